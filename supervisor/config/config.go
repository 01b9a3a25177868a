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
	Node      string             `yaml:"node"`
	ZooKeeper ZooKeeper          `yaml:"zookeeper"`
	Log       Log                `yaml:"log"`
	Services  map[string]Service `yaml:"services"`
}

// ZooKeeper says where the ensemble is.
type ZooKeeper struct {
	Servers        []Server      `yaml:"servers,flow"`
	Root           string        `yaml:"root"`
	SessionTimeout time.Duration `yaml:"session_timeout"`
	Auth           *Auth         `yaml:"auth,omitempty"`
}

// Auth names the credentials of a session; File holds them and is read by ReadSecret when a session is opened.
type Auth struct {
	Scheme string `yaml:"scheme"`
	File   string `yaml:"file"`
}

// Log says what the supervisor itself logs.
type Log struct {
	Level  LogLevel  `yaml:"level"`
	Format LogFormat `yaml:"format"`
}

// Service is one program that runs on one node at a time.
type Service struct {
	Command     Command           `yaml:"command,flow"`
	WorkingDir  string            `yaml:"working_dir,omitempty"`
	Env         map[string]string `yaml:"env,omitempty"`
	Election    Election          `yaml:"election"`
	Contain     Contain           `yaml:"contain"`
	GraceDelay  time.Duration     `yaml:"grace_delay"`
	StopSignal  Signal            `yaml:"stop_signal"`
	StopTimeout time.Duration     `yaml:"stop_timeout"`
	Restart     Restart           `yaml:"restart"`
	Fencing     Fencing           `yaml:"fencing"`
}

// Restart says what follows the end of a child. GiveUpAfter failures within Within hand the lock to another node, and
// this one does not stand again for RejoinAfter; 0 failures means that it never gives up.
type Restart struct {
	Policy      RestartPolicy `yaml:"policy"`
	Delay       time.Duration `yaml:"delay"`
	MaxDelay    time.Duration `yaml:"max_delay"`
	GiveUpAfter int           `yaml:"give_up_after"`
	Within      time.Duration `yaml:"within"`
	RejoinAfter time.Duration `yaml:"rejoin_after"`
}

// Fencing says how an old active node is made sure to be dead when nothing proves it.
type Fencing struct {
	Methods   []FenceMethod `yaml:"methods,omitempty"`
	OnFailure OnFailure     `yaml:"on_failure"`
}

// FenceMethod is one step of the chain; exactly one field is set.
type FenceMethod struct {
	Exec *FenceExec `yaml:"exec,omitempty"`
}

// FenceExec runs a command that exits 0 once the target is known to be dead.
type FenceExec struct {
	Command Command       `yaml:"command,flow"`
	Timeout time.Duration `yaml:"timeout"`
}

// Default is the configuration that an empty file stands for: no node, no servers and no services yet.
func Default() *Config {
	return &Config{
		ZooKeeper: ZooKeeper{Root: "/understudy", SessionTimeout: 6 * time.Second},
		Log:       Log{Level: LogInfo, Format: LogText},
		Services:  map[string]Service{},
	}
}

// DefaultService is what every service starts from.
func DefaultService() Service {
	return Service{
		Election:    ElectionRace,
		Contain:     ContainAuto,
		GraceDelay:  2 * time.Second,
		StopSignal:  Signal(syscall.SIGTERM),
		StopTimeout: 10 * time.Second,
		Restart: Restart{
			Policy:      RestartOnFailure,
			Delay:       time.Second,
			MaxDelay:    30 * time.Second,
			GiveUpAfter: 5,
			Within:      2 * time.Minute,
			RejoinAfter: time.Minute,
		},
		Fencing: Fencing{OnFailure: OnFailureRefuse},
	}
}

// setDefaults is called before a method that the file names is read.
func (e *FenceExec) setDefaults() { e.Timeout = 10 * time.Second }

// ServiceNames lists the services in a steady order.
func (c *Config) ServiceNames() []string { return slices.Sorted(maps.Keys(c.Services)) }

// clone gives a service that shares nothing with s that decoding would change in place.
func (s Service) clone() Service {
	s.Env = maps.Clone(s.Env)
	return s
}
