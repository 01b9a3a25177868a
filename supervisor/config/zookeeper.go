package config

import (
	"net"
	"regexp"
	"strings"
	"time"
)

// ZooKeeper says where the ensemble is.
type ZooKeeper struct {
	Servers        []ServerAddress `yaml:"servers,flow" doc:"The servers of the ensemble, each as host:port."`
	Root           string          `yaml:"root" doc:"The path in ZooKeeper that everything is below."`
	Name           string          `yaml:"name,omitempty" doc:"Only needed if two ensembles have the same root, node and service on one host: it keeps their files apart."`
	Profile        Profile         `yaml:"profile,omitempty" doc:"Sets defaults of lease and grace_delay that go together. Default: as normal."` // read first
	Lease          time.Duration   `yaml:"lease" doc:"How long a node's programs may run after its last heartbeat that ZooKeeper acknowledged. A lost host is taken over after at most 1.22 times that and the grace delay."`
	Auth           *ZooKeeperAuth  `yaml:"auth,omitempty" doc:"Credentials. With them, everything that is created belongs to their owner only."`
	TrustedNetwork bool            `yaml:"trusted_network" doc:"Whether a firewall, or client certificates that the servers demand, keep unauthorized clients away. It only ends warnings."`
	TLS            *ZooKeeperTLS   `yaml:"tls,omitempty" doc:"Speak TLS with the servers. The key servers then lists their secure ports. {} trusts the authorities that this host trusts."`
}

// ZooKeeperTLS names what connections are secured with. The files are read anew for each connection.
type ZooKeeperTLS struct {
	CAFile     string `yaml:"ca_file,omitempty" doc:"The authorities that sign for servers, in PEM. Default: those that this host trusts."`
	CertFile   string `yaml:"cert_file,omitempty" doc:"Our own certificate, for servers that ask for one, in PEM."`
	KeyFile    string `yaml:"key_file,omitempty" doc:"Its key, in PEM."`
	ServerName string `yaml:"server_name,omitempty" doc:"The name in the servers' certificates. Default: the one in servers:."`
}

// profile is what a Profile stands for.
type profile struct{ lease, grace time.Duration }

// profiles are the profiles. What they mean for takeovers is in docs/config.md.
var profiles = map[Profile]profile{
	ProfileFast:   {time.Second, 500 * time.Millisecond},
	ProfileNormal: {3 * time.Second, 2 * time.Second},
	ProfileWide:   {10 * time.Second, 3 * time.Second},
}

// ZooKeeperAuth names the credentials of a session. What File holds is shown as it changes.
type ZooKeeperAuth struct {
	Scheme string `yaml:"scheme" doc:"How clients prove who they are. Only digest is known."`
	File   string `yaml:"file" doc:"The file with user:password. With several lines, everything that is created belongs to each of them."`
}

// ownFolder is a root that lies in what a cluster with a shorter one has there.
var ownFolder = regexp.MustCompile(`^(/.+?)/(services|nodes|known|drained)(/|$)`)

func (z ZooKeeper) check(p place) {
	if len(z.Servers) == 0 {
		p.key("servers").fault(`missing: list the ensemble, as in ["zk1:2181", "zk2:2181", "zk3:2181"]`)
	}
	seen := map[ServerAddress]int{}
	for i, server := range z.Servers {
		if j, twice := seen[server]; twice {
			p.key("servers").item(i).fault("%s is the same server as servers[%d]: remove one", server, j)
			continue
		}
		seen[server] = i
		if _, port, _ := net.SplitHostPort(string(server)); port == "2888" || port == "3888" {
			p.key("servers").item(i).warn("%s is where servers usually talk to each other: clients use %s", port, defaultPort)
		}
	}
	if len(z.Servers) == 2 {
		p.key("servers").warn("if these two are the whole ensemble, the loss of either stops all services: use three servers, or one")
	}
	if message := rootFault(z.Root); message != "" {
		p.key("root").fault("%s", message)
	}
	if own := ownFolder.FindStringSubmatch(z.Root); own != nil {
		p.key("root").warn("a cluster with the root %s has its %s there, and its `understudy forget` may delete this one: "+
			"choose another root", own[1], own[2])
	}
	if why := nameFault(z.Name); why != "" && p.key("name").given() {
		p.key("name").fault("%s", why)
	}
	checkLease(p.key("lease"), z.Lease)
	if z.Auth != nil {
		z.Auth.check(p.key("auth"))
		if z.TLS == nil && !z.TrustedNetwork && len(z.Servers) > 0 && !z.local() {
			p.key("auth").danger("the password is sent without TLS to the ZooKeeper servers, where others on the network can read it: " +
				"set zookeeper.tls, or set `trusted_network: true` where no other client is on that network")
		}
	}
	if z.TLS != nil {
		z.TLS.check(p.key("tls"))
	}
}

func (t ZooKeeperTLS) check(p place) {
	checkFile(p.key("ca_file"), t.CAFile, "")
	checkFile(p.key("cert_file"), t.CertFile, "")
	checkFile(p.key("key_file"), t.KeyFile, "")
	switch {
	case t.CertFile != "" && t.KeyFile == "":
		p.key("key_file").fault("missing: it goes with cert_file")
	case t.KeyFile != "" && t.CertFile == "":
		p.key("cert_file").fault("missing: it goes with key_file")
	}
}

func (auth ZooKeeperAuth) check(p place) {
	switch {
	case auth.Scheme == "":
		p.key("scheme").fault("missing: write digest")
	case auth.Scheme != "digest":
		p.key("scheme").fault("%s", mustBeOneOf(auth.Scheme, []string{"digest"}))
	}
	checkSecretFile(p.key("file"), auth.File, "user:password", true)
}

// rootFault says why a path cannot hold our znodes; "" when it can.
func rootFault(root string) string {
	switch {
	case root == "":
		return "must not be empty: write a path such as /understudy"
	case !strings.HasPrefix(root, "/"):
		return quoted(root) + " must start with /"
	case root == "/":
		return "must lie below /, as /understudy does"
	case strings.HasSuffix(root, "/"):
		return quoted(root) + " must not end with /"
	case root == "/zookeeper" || strings.HasPrefix(root, "/zookeeper/"):
		return "/zookeeper belongs to ZooKeeper itself"
	case !isPrintable(root):
		return quoted(root) + " contains a character that no znode may have"
	}
	for part := range strings.SplitSeq(root[1:], "/") {
		if part == "" || part == "." || part == ".." {
			return quoted(root) + " must not have empty parts, . or .."
		}
	}
	return ""
}

// checkLease checks that a lease is long enough to be extended and to kill a tree in, and that a session can be as long.
func checkLease(p place, lease time.Duration) {
	switch {
	case lease <= 0:
		p.fault("must be positive, not %v", lease)
	case lease < shortestLease:
		p.fault("%v is too short: write %v or more", lease, shortestLease)
	case lease > longestLease:
		p.fault("%v is too long: write %v or less", lease, longestLease)
	case lease > longLoss:
		p.warn("%v is long: if a host is lost, its services start on another one only after up to %v and their grace_delay",
			lease, lease*12/5)
	}
}

// As the package election has them.
const (
	shortestLease = 500 * time.Millisecond
	longestLease  = 10 * time.Minute

	longLoss = time.Minute // without a service is seldom meant
)
