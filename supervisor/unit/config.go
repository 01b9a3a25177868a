package unit

import (
	"reflect"
	"slices"
	"syscall"
	"time"

	"understudy/supervisor/child"
)

// Conf is what a unit needs of a service's config.
type Conf struct {
	Programs []Program // in the order of their start
	Health   Health
	OnActive Hook
}

// Program is one of a service's.
type Program struct {
	Name        string
	Command     []string
	Dir         string
	User, Group string
	Umask       *uint32
	Env         []string
	EnvFile     string
	InheritEnv  []string         // of the supervisor's own environment; nil: all
	Limits      map[string]Limit // by the names of package config
	Nice        *int
	OOMScore    *int
	NoNewPrivs  bool
	Caps        *child.Capabilities // nil: the supervisor's own
	StopSignal  syscall.Signal
	StopTimeout time.Duration
	Ready       Ready
	Log         LogFile
	Oneshot     bool     // it runs to its end before the next one starts
	Undo        []string // undoes what a oneshot did
}

// Limit is a resource limit.
type Limit struct{ Soft, Hard uint64 }

// Ready says how to learn that a process has started. With no way, running is enough.
type Ready struct {
	TCP, HTTP string
	Exec      []string
	Notify    bool
	After     time.Duration
	Timeout   time.Duration
}

// Health says how to learn that a service does its work.
type Health struct {
	TCP, HTTP  string
	Exec       []string
	Interval   time.Duration
	Timeout    time.Duration
	StartDelay time.Duration
	Failures   int // in a row, until it counts as failed
}

// Hook is a command; none when it is empty.
type Hook struct {
	Command []string
	Timeout time.Duration
}

// LogFile takes a process's output; with no Path it is passed through.
type LogFile struct {
	Path     string
	MaxSize  int64
	Keep     int
	Compress bool
}

// outdated tells whether what runs has to be started anew for another config.
func outdated(was, now Conf) bool {
	return !reflect.DeepEqual(essence(was), essence(now))
}

// essence is what of a config cannot be changed while it runs.
func essence(c Conf) []Program {
	programs := slices.Clone(c.Programs)
	for i := range programs {
		p := &programs[i]
		p.StopSignal, p.StopTimeout, p.Ready.Timeout, p.Undo = 0, 0, 0, nil
		p.Log.MaxSize, p.Log.Keep, p.Log.Compress = 0, 0, false
	}
	return programs
}

// slow tells whether a unit is not ready as soon as it is started.
func (c Conf) slow() bool {
	slow := func(p Program) bool { return p.Oneshot || !reflect.DeepEqual(p.Ready, Ready{}) }
	return len(c.OnActive.Command) > 0 || slices.ContainsFunc(c.Programs, slow)
}

// current is a program as the config has it now: how it is stopped may change while it runs.
func (c Conf) current(p Program) Program {
	for _, now := range c.Programs {
		if now.Name == p.Name {
			p.StopSignal, p.StopTimeout = now.StopSignal, now.StopTimeout
		}
	}
	return p
}
