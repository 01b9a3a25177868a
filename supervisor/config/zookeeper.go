package config

import (
	"strings"
	"time"
)

// ZooKeeper says where the ensemble is.
type ZooKeeper struct {
	Servers           []ServerAddress `yaml:"servers,flow" doc:"The servers of the ensemble, each as host:port."`
	Root              string          `yaml:"root" doc:"The path in ZooKeeper that everything is below."`
	Name              string          `yaml:"name,omitempty" doc:"Tells this cluster's files on a host from those of another ensemble. Only needed where supervisors of two ensembles have the same root, node and service on one host. Default: none."`
	Profile           Profile         `yaml:"profile,omitempty" doc:"fast, normal or wide. It sets defaults of session_timeout and grace_delay that go together (2s and 500ms, 6s and 2s, 15s and 3s). Default: as normal."` // read first
	SessionTimeout    time.Duration   `yaml:"session_timeout" doc:"How long after its last sign of life a node's session expires, and other nodes take over."`
	MinSessionTimeout time.Duration   `yaml:"min_session_timeout,omitempty" doc:"The shortest session timeout that any server may grant, also while servers are restarted with another config. The lease counts with 12/7 of it at most, so that it ends in time even if no supervisor has read the grant. A session with a smaller grant is ended. Default: not known."`
	Auth              *ZooKeeperAuth  `yaml:"auth,omitempty" doc:"Credentials. With them, everything that is created is for their owner only."`
	TrustedNetwork    bool            `yaml:"trusted_network" doc:"Whether a firewall, or client certificates that the servers demand, keep unauthorized clients from them. It ends the warnings of that, and changes nothing else."`
	TLS               *ZooKeeperTLS   `yaml:"tls,omitempty" doc:"Speak TLS with the servers. The key servers then lists their secure ports. {} trusts the authorities that this host trusts."`
}

// ZooKeeperTLS names what connections are secured with. The files are read anew for each connection.
type ZooKeeperTLS struct {
	CAFile     string `yaml:"ca_file,omitempty" doc:"The authorities that sign for servers, in PEM, an absolute path. Default: those that this host trusts."`
	CertFile   string `yaml:"cert_file,omitempty" doc:"Our own certificate, for servers that ask for one, in PEM, an absolute path."`
	KeyFile    string `yaml:"key_file,omitempty" doc:"Its key, in PEM, an absolute path."`
	ServerName string `yaml:"server_name,omitempty" doc:"The name in the servers' certificates. Default: the one in servers:."`
}

// profile is what a Profile stands for.
type profile struct{ session, grace time.Duration }

// profiles are the profiles. What they mean for takeovers is in docs/config.md.
var profiles = map[Profile]profile{
	ProfileFast:   {2 * time.Second, 500 * time.Millisecond},
	ProfileNormal: {6 * time.Second, 2 * time.Second},
	ProfileWide:   {15 * time.Second, 3 * time.Second},
}

// ZooKeeperAuth names the credentials of a session. What File holds is shown as it changes.
type ZooKeeperAuth struct {
	Scheme string `yaml:"scheme" doc:"How clients prove who they are. Only digest is known."`
	File   string `yaml:"file" doc:"The file with user:password, an absolute path. With several lines, everything that is created belongs to each of them. A change is loaded while running."`
}

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
	}
	if message := rootFault(z.Root); message != "" {
		p.key("root").fault("%s", message)
	}
	if why := nameFault(z.Name); why != "" && p.key("name").given() {
		p.key("name").fault("%s", why)
	}
	checkSessionTimeout(p.key("session_timeout"), z.SessionTimeout)
	if p := p.key("min_session_timeout"); p.given() {
		z.checkFloor(p)
	}
	if z.Auth != nil {
		z.Auth.check(p.key("auth"))
		if z.TLS == nil && !z.TrustedNetwork && len(z.Servers) > 0 && !z.local() {
			p.key("auth").danger("the password is sent without TLS to the ZooKeeper servers, where others on the network can read it: set zookeeper.tls, " +
				"or set `trusted_network: true` where no other client is on that network")
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

// checkSessionTimeout checks P1's arithmetic: a lease ends early enough before the session can, and is still long enough to
// be extended and to kill a tree in.
func checkSessionTimeout(p place, timeout time.Duration) {
	const shortest, long, longest = time.Second, 2 * time.Minute, (1<<31 - 1) * time.Millisecond
	switch {
	case timeout <= 0:
		p.fault("must be positive, not %v", timeout)
	case timeout < shortest:
		p.fault("%v is too short: write %v or more", timeout, shortest)
	case timeout > longest:
		p.fault("%v is more than ZooKeeper can count: %v at most", timeout, longest)
	case timeout > long:
		p.warn("%v is long: a host that is lost is taken over only after that time", timeout)
	}
}

// counted is the session timeout that all counts with, if the servers grant what is asked for.
func (z ZooKeeper) counted() time.Duration {
	if floor := z.MinSessionTimeout; floor > 0 && z.SessionTimeout > 0 {
		return min(z.SessionTimeout, floor*12/7)
	}
	return z.SessionTimeout
}

func (z ZooKeeper) checkFloor(p place) {
	const shortest = 600 * time.Millisecond
	switch floor := z.MinSessionTimeout; {
	case floor <= 0:
		p.fault("must be positive, not %v", floor)
	case floor < shortest:
		p.fault("%v is too short: the lease is that of a session_timeout of 12/7 of it at most, and that has to be a second or more; write %v or more", floor, shortest)
	case floor > z.SessionTimeout:
		p.fault("%v is more than the session_timeout of %v: no session would be good enough", floor, z.SessionTimeout)
	}
}
