package config

import "net"

// NodeFencing is what fencing needs of a node as a whole.
type NodeFencing struct {
	Agent *Agent `yaml:"agent,omitempty" doc:"Where other nodes, when they take over, ask whether a program here is dead, and have it killed."`
}

// Agent says where the fencing agent listens, and what the nodes know one another by. The files are read anew as they change.
type Agent struct {
	Listen     string    `yaml:"listen" doc:"Where to listen, as host:port, or without a host on all addresses."`
	Advertise  string    `yaml:"advertise,omitempty" doc:"Where the other nodes reach it, as host:port. Default: the host of listen, else the address that ZooKeeper is reached from."`
	SecretFile string    `yaml:"secret_file,omitempty" doc:"The file with the secret that all nodes share, 16 characters or more. Of several lines the first is used, and all are accepted."`
	TLS        *AgentTLS `yaml:"tls,omitempty" doc:"Certificates on both sides, in place of the secret or besides it."`
}

// AgentTLS names what agents, and those who ask them, know one another by.
type AgentTLS struct {
	CAFile     string `yaml:"ca_file" doc:"The authorities that sign for nodes, in PEM. Without server_name, any client with such a certificate may ask."`
	CertFile   string `yaml:"cert_file" doc:"This node's certificate, for a server and a client, in PEM."`
	KeyFile    string `yaml:"key_file" doc:"Its key, in PEM."`
	ServerName string `yaml:"server_name,omitempty" doc:"The name in the nodes' certificates, on both sides. {node} is filled in. Default: the host that is asked, on its side alone."`
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
	checkSecretFile(p.key("secret_file"), a.SecretFile, "the secret that all nodes share", a.TLS == nil)
	if a.TLS == nil {
		return
	}
	tls := p.key("tls")
	checkFile(tls.key("ca_file"), a.TLS.CAFile, "the authorities that sign for nodes")
	checkFile(tls.key("cert_file"), a.TLS.CertFile, "this node's certificate")
	checkFile(tls.key("key_file"), a.TLS.KeyFile, "its key")
}

func isAny(host string) bool {
	ip := net.ParseIP(host)
	return ip != nil && ip.IsUnspecified()
}
