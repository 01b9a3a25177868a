package config

import (
	"maps"
	"slices"
	"syscall"
	"time"
)

// DefaultFile is read when no file is named.
const DefaultFile = "/etc/understudy/understudy.yaml"

// Config is everything one supervisor runs. Default() fills it for a caller that has flags and no file.
type Config struct {
	Node      string
	ZooKeeper ZooKeeper
	Log       Log
	HTTP      HTTP
	Fencing   NodeFencing
	Watchdog  Watchdog
	Services  map[string]Service
}

// document is the file as it is written. Its fields are read in their order: services start from the defaults.
type document struct {
	Node      string             `yaml:"node" doc:"This node's name, unique in the cluster. Default: the host's name."`
	ZooKeeper ZooKeeper          `yaml:"zookeeper" doc:"The ensemble that elects."`
	Log       Log                `yaml:"log" doc:"What the supervisor itself logs."`
	HTTP      HTTP               `yaml:"http,omitempty" doc:"What is served over HTTP: who is active, for people, load balancers and monitoring."`
	Fencing   NodeFencing        `yaml:"fencing,omitempty" doc:"How this node takes part in the fencing of others and of itself."`
	Watchdog  Watchdog           `yaml:"watchdog" doc:"A hardware watchdog that resets the machine when a child outlives its lease."`
	Defaults  written            `yaml:"defaults,omitempty" doc:"Any key of a service, for all services. What a service gives wins; env and limits are merged by name."`
	Include   []string           `yaml:"include,omitempty" doc:"More files that hold services:, each a path or a glob, relative to this file."`
	Services  map[string]written `yaml:"services" doc:"What is to run on one node at a time, by name."`
}

// fragment is an included file as it is written.
type fragment struct {
	Services map[string]written `yaml:"services"`
}

// written is a service as it is written: with the keys of its only command, or with processes.
type written struct {
	Program `yaml:",inline"`
	Service `yaml:",inline"`
}

// ZooKeeper says where the ensemble is.
type ZooKeeper struct {
	Servers           []Server      `yaml:"servers,flow" doc:"The servers of the ensemble, each as host:port."`
	Root              string        `yaml:"root" doc:"The path in ZooKeeper below which everything is kept."`
	SessionTimeout    time.Duration `yaml:"session_timeout" doc:"How long after its last sign of life a node is given up."`
	MinSessionTimeout time.Duration `yaml:"min_session_timeout,omitempty" doc:"The least that any server ever grants a session, also while servers are restarted with another config. The lease counts with 12/7 of it at most, so that it ends in time although nobody has read what was granted; a session that is granted less is ended. Default: not known."`
	Auth              *Auth         `yaml:"auth,omitempty" doc:"Credentials. With them, all that is created is for their owner only."`
	TrustedNetwork    bool          `yaml:"trusted_network" doc:"Whether strangers are kept from the servers, by a firewall or by client certificates that they demand. With auth, and unless this is true, a session's end does not tell that a former active has stopped: whoever cannot ask waits for at least 7/12 + 1/20 of its session timeout. Without auth it has no effect: the network is taken for trusted."`
	TLS               *TLS          `yaml:"tls,omitempty" doc:"Speak TLS with the servers, whose ports are then their secure ones; {} trusts whom this machine trusts."`
}

// TLS names what connections are secured with. The files are read anew for each connection.
type TLS struct {
	CAFile     string `yaml:"ca_file,omitempty" doc:"The authorities that sign for servers, in PEM, an absolute path. Default: those that this machine trusts."`
	CertFile   string `yaml:"cert_file,omitempty" doc:"Our own certificate, for servers that ask for one, in PEM, an absolute path."`
	KeyFile    string `yaml:"key_file,omitempty" doc:"Its key, in PEM, an absolute path."`
	ServerName string `yaml:"server_name,omitempty" doc:"The name in the servers' certificates. Default: the one in servers:."`
}

// Auth names the credentials of a session. What File holds is shown as it changes.
type Auth struct {
	Scheme string `yaml:"scheme" doc:"digest"`
	File   string `yaml:"file" doc:"The file that holds user:password, an absolute path. What is created belongs to each of several lines; a change is taken up while running."`
}

// Log says what the supervisor itself logs.
type Log struct {
	Level  LogLevel  `yaml:"level" doc:"The least severe level that is logged."`
	Format LogFormat `yaml:"format" doc:"How a line is written."`
}

// HTTP says what is served over HTTP. The token files hold secrets, and are read by ReadSecret with each request that needs them.
type HTTP struct {
	Listen    string `yaml:"listen,omitempty" doc:"Where to listen, as host:port; without a host, on all addresses. Nothing is served when it is missing or empty."`
	TokenFile string `yaml:"token_file,omitempty" doc:"The file that holds the bearer token of those who may change something, an absolute path. Without it nobody may."`

	ReadTokenFile string    `yaml:"read_token_file,omitempty" doc:"The file that holds the token of those who may look, an absolute path: a bearer token, or the password that a browser asks for. The other token is good for that, too. Without it everybody may look. /active, /healthz and /readyz need none."`
	Hosts         []string  `yaml:"hosts,omitempty,flow" doc:"More names that this side is called by, as in a proxy's or a browser's Host header; those of node and host, localhost and IP addresses are known. Other names are refused, but for /active, /healthz and /readyz."`
	TLS           *TLSFiles `yaml:"tls,omitempty" doc:"Speak TLS (HTTPS), and nothing else. A renewed certificate is taken up while running."`
}

// TLSFiles names a server's certificate. The files are read anew as they change.
type TLSFiles struct {
	CertFile string `yaml:"cert_file" doc:"The certificate, and those that lead to its authority, in PEM, an absolute path."`
	KeyFile  string `yaml:"key_file" doc:"Its key, in PEM, an absolute path."`
}

// NodeFencing is what fencing needs of a node as a whole.
type NodeFencing struct {
	Agent *Agent `yaml:"agent,omitempty" doc:"Where the node that took over can ask whether a child of this one is dead, and have it killed."`
}

// Agent says where the fencing agent listens, and what the nodes know one another by. The files are read anew as they change.
type Agent struct {
	Listen     string    `yaml:"listen" doc:"Where to listen, as host:port; without a host, on all addresses."`
	Advertise  string    `yaml:"advertise,omitempty" doc:"Where the other nodes reach it, as host:port. Default: the host of listen, or else the address that ZooKeeper is reached from."`
	SecretFile string    `yaml:"secret_file,omitempty" doc:"The file that holds the secret which all nodes share, a line of 16 characters or more. Of several lines the first is used, and all are good. An absolute path. Takes this or tls."`
	TLS        *AgentTLS `yaml:"tls,omitempty" doc:"Certificates on both sides, in place of the secret or besides it."`
}

// AgentTLS names what agents, and those who ask them, know one another by.
type AgentTLS struct {
	CAFile     string `yaml:"ca_file" doc:"The authorities that sign for nodes, in PEM, an absolute path. Whomever they sign for may ask, unless server_name is given."`
	CertFile   string `yaml:"cert_file" doc:"This node's certificate, for a server and a client, in PEM, an absolute path."`
	KeyFile    string `yaml:"key_file" doc:"Its key, in PEM, an absolute path."`
	ServerName string `yaml:"server_name,omitempty" doc:"The name in the nodes' certificates, on both sides; {node} is filled in. Default: the host that is asked, on its side alone."`
}

// Watchdog says which device resets the machine, and whether to do without it.
type Watchdog struct {
	Device string       `yaml:"device" doc:"The watchdog device, an absolute path. No other program may hold it."`
	Mode   WatchdogMode `yaml:"mode" doc:"off: it is left alone. automatic: it is used where it can be. required: a node that cannot use it does not stand for election."`
}

// Default is the configuration that an empty file stands for: no node, no servers and no services yet.
func Default() *Config {
	return &Config{
		ZooKeeper: ZooKeeper{Root: "/understudy", SessionTimeout: 6 * time.Second},
		Log:       Log{Level: LogInfo, Format: LogText},
		Watchdog:  Watchdog{Device: "/dev/watchdog", Mode: WatchdogOff},
		Services:  map[string]Service{},
	}
}

// DefaultService is one that runs a command and gives no other key.
func DefaultService(command ...string) Service {
	w := writtenDefaults()
	w.Command = command
	return w.service()
}

// writtenDefaults is what every service starts from before it is read.
func writtenDefaults() written {
	hook := Hook{Timeout: 10 * time.Second}
	return written{
		Program: Program{
			StopSignal:  Signal(syscall.SIGTERM),
			StopTimeout: 10 * time.Second,
			Ready:       Ready{Timeout: 30 * time.Second},
			Log:         LogFile{MaxSize: 50 << 20, Keep: 5, Compress: true},
		},
		Service: Service{
			Election:     ElectionRace,
			Contain:      ContainAuto,
			Eligible:     true,
			Moves:        Moves{Within: 10 * time.Minute},
			OnLoss:       OnLossStop,
			GraceDelay:   2 * time.Second,
			ReloadSignal: Signal(syscall.SIGHUP),
			Restart: Restart{
				Policy:      RestartOnFailure,
				Delay:       time.Second,
				MaxDelay:    30 * time.Second,
				GiveUpAfter: 5,
				Within:      2 * time.Minute,
				RejoinAfter: time.Minute,
			},
			Health:   Health{Interval: 5 * time.Second, Timeout: 2 * time.Second, Failures: 3},
			Precheck: Precheck{Interval: 10 * time.Second, Timeout: 5 * time.Second},
			Hooks:    Hooks{OnActive: hook, OnStandby: hook, OnFence: hook, OnGiveUp: hook},
			Fencing:  Fencing{OnFailure: OnFailureRefuse},
		},
	}
}

// setDefaults is called before a method that the file names is read.
func (e *FenceExec) setDefaults()    { e.Timeout = 10 * time.Second }
func (e *FenceAsk) setDefaults()     { e.Timeout = 5 * time.Second }
func (e *FenceSSH) setDefaults()     { e.Timeout = 10 * time.Second }
func (e *FenceHTTP) setDefaults()    { e.Timeout = 5 * time.Second }
func (e *FenceProgram) setDefaults() { e.Timeout = 30 * time.Second }

// ServiceNames lists the services in a steady order.
func (c *Config) ServiceNames() []string { return slices.Sorted(maps.Keys(c.Services)) }
