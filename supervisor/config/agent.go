package config

import "net"

// NodeFencing is what fencing needs of a node as a whole.
type NodeFencing struct {
	Agent *Agent `yaml:"agent,omitempty" doc:"Where other nodes, when they take over, ask whether a program here is dead, and have it killed."`
}

// Agent says where the fencing agent listens, and the secret by which the nodes know one another. Its file is read anew as it changes.
type Agent struct {
	Listen     string `yaml:"listen" doc:"Where to listen, as host:port, or without a host on all addresses."`
	Advertise  string `yaml:"advertise,omitempty" doc:"Where the other nodes reach it, as host:port. Default: the host of listen, else the address that ZooKeeper is reached from."`
	SecretFile string `yaml:"secret_file" doc:"The file with the secret that all nodes share, 16 characters or more. Of several lines the first is used, and all are accepted."`
}

func (a Agent) check(p place) {
	if a.Listen == "" && !p.key("listen").given() {
		p.key("listen").fault("missing: write host:port, as in :8438")
	}
	checkAddress(p.key("listen"), a.Listen)
	checkAddress(p.key("advertise"), a.Advertise)
	if host, _, err := net.SplitHostPort(a.Advertise); err == nil && (host == "" || isAny(host)) {
		p.key("advertise").fault("%s is not an address that others can reach", quoted(a.Advertise))
	}
	checkSecretFile(p.key("secret_file"), a.SecretFile, "the secret that all nodes share", true)
}

func isAny(host string) bool {
	ip := net.ParseIP(host)
	return ip != nil && ip.IsUnspecified()
}
