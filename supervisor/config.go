package supervisor

import (
	"time"

	"github.com/hashicorp/go-hclog"

	"understudy/election"
	"understudy/supervisor/host"
	"understudy/supervisor/service"
	"understudy/supervisor/unit"
)

// Config is all that one supervisor runs.
type Config struct {
	Node     string
	Host     string
	Version  string
	Servers  []string
	Root     string
	Timeout  time.Duration // of the ZooKeeper session
	Floor    time.Duration // no server ever grants less; 0: nobody says so
	Auth     *election.Auth
	Agent    *Agent    // nil: nobody can ask
	Watchdog *Watchdog // nil: none is used
	Services []Service
	Warnings []string      // dangerous settings, a line each, for those who look at the status
	Changes  <-chan Change // what becomes of the config while it runs; nil: nothing
	Logger   hclog.Logger
	TLS      *election.TLS          // nil: plain
	Dial     election.DialFunc      // nil: TCP
	Machine  Machine                // nil: this one
	Observer Observer               // nil: nobody looks
	Pulse    <-chan chan<- struct{} // each is answered, without waiting for a taker, while the supervisor's loops turn
	Hurry    <-chan struct{}        // closed when stopping is to be quick: children are killed, not asked
	Thread   chan<- func()          // takes what has to run on the main thread of the process; nil: there is no handing over
	Upgrade  Upgrade
	Broken   func(error) // told of what cannot be, beside the log; nil: nobody is
	Legacy   []byte      // what a former image of this process has handed over; nil: there was none

	// Strangers says that others reach the servers too, and may end any session at any moment: then no loss of a lock tells that
	// its holder's lease has ended.
	Strangers bool
}

// Upgrade is how a supervisor becomes another image of its process, another version as a rule, without its children's noticing.
type Upgrade struct {
	Asked  <-chan struct{}           // nil: it never does
	Become func(legacy []byte) error // execs; returns only if that fails
}

// Change is a config that was read anew.
type Change struct {
	Services []Service
	Fault    string   // why it is not taken up: the services stay as they are
	Warnings []string // dangerous settings of the config that was taken up
}

// Service is the config of one service.
type Service = service.Conf

// Machine is the host as a supervisor sees it.
type Machine = host.Machine

// Guard is its two guardians.
type Guard = host.Guard

// Tree is a program and all that it forks.
type Tree = unit.Tree

// Process is a program that was started.
type Process = unit.Process

// Watchdog is the device that resets this machine when a child outlives its lease.
type Watchdog = service.Watchdog
