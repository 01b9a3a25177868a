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
	Node      string             `yaml:"-"` // document has it as it is written
	ZooKeeper ZooKeeper          `yaml:"zookeeper" doc:"The ensemble that decides which node is active."`
	Log       Logging            `yaml:"log" doc:"What the supervisor itself logs."`
	HTTP      HTTPServer         `yaml:"http,omitempty" doc:"Status over HTTP, for people, load balancers and monitoring."`
	Fencing   NodeFencing        `yaml:"fencing,omitempty" doc:"How this node takes part in fencing, of others and of itself."`
	Notify    *Notify            `yaml:"notify,omitempty" doc:"How people are told of takeovers, and of services that lack a standby, are down or unhealthy, or well again. One of the nodes that have this key does it."`
	Watchdog  Watchdog           `yaml:"watchdog" doc:"A hardware watchdog that resets the host if a program outlives its lease."`
	Services  map[string]Service `yaml:"-"` // document has them as they are written
}

// document is the file as it is written. Its fields are read in their order: services start from the defaults.
type document struct {
	Node     nodeKey `yaml:"node" doc:"This node's name, unique in the cluster. Or per-node settings: a mapping of names to http, fencing and watchdog. 'run --node' overrides it. Default: the host's name."`
	Config   `yaml:",inline"`
	Defaults written          `yaml:"defaults,omitempty" doc:"Any key of a service, for all services. A service's own value wins."`
	Include  []string         `yaml:"include,omitempty" doc:"More files with services:, each a path or a glob, relative to this file."`
	Services map[string]entry `yaml:"services" doc:"What runs on one node at a time, by name."`
}

// document is how c is written: with command: where that says it all.
func (c *Config) document() document {
	doc := document{Node: nodeKey{name: c.Node}, Config: *c, Services: make(map[string]entry, len(c.Services))}
	for name, s := range c.Services {
		doc.Services[name] = entry{written: s.write()}
	}
	return doc
}

// config is what the document means.
func (doc document) config() *Config {
	c := doc.Config
	c.Services = make(map[string]Service, len(doc.Services))
	for name, w := range doc.Services {
		c.Services[name] = w.service()
	}
	return &c
}

// fragment is an included file as it is written.
type fragment struct {
	Services map[string]entry `yaml:"services"`
}

// written is a service as it is written: with the keys of its only command, or with processes.
type written struct {
	Program `yaml:",inline"`
	Service `yaml:",inline"`
}

// entry is a service under services:, with what differs on single nodes.
type entry struct {
	written `yaml:",inline"`
	Nodes   map[string]written `yaml:"nodes,omitempty" doc:"Any key of the service, by the name of a node. It is merged into the service's keys as these are into defaults."`
}

// Logging says what the supervisor itself logs.
type Logging struct {
	Level  LogLevel  `yaml:"level" doc:"The least severe level that is logged."`
	Format LogFormat `yaml:"format" doc:"How a line is written."`
}

// Default is the configuration that an empty file stands for: no node, no servers and no services yet.
func Default() *Config {
	return &Config{
		ZooKeeper: ZooKeeper{Root: "/understudy", Lease: 3 * time.Second},
		Log:       Logging{Level: LogInfo, Format: LogText},
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

// defaultUndoTimeout is for every process that is undone.
const defaultUndoTimeout = 10 * time.Second

// writtenDefaults is what every service starts from before it is read.
func writtenDefaults() written {
	hook := Hook{Timeout: 10 * time.Second}
	return written{
		Program: Program{
			StopSignal:  Signal(syscall.SIGTERM),
			StopTimeout: 10 * time.Second,
			Ready:       Ready{Timeout: 30 * time.Second},
			Log:         LogFile{MaxSize: 50 << 20, Keep: 5},
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
			Health:   HealthCheck{Interval: 5 * time.Second, Timeout: 2 * time.Second, Failures: 3},
			Precheck: Precheck{Interval: 10 * time.Second, Timeout: 5 * time.Second},
			Hooks:    Hooks{OnActive: hook, OnStandby: hook, OnFence: hook, OnGiveUp: hook},
			Fencing:  Fencing{OnFailure: OnFailureRefuse},
		},
	}
}

// ServiceNames lists the services in a steady order.
func (c *Config) ServiceNames() []string { return slices.Sorted(maps.Keys(c.Services)) }
