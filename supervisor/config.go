package supervisor

import (
	"time"

	"github.com/hashicorp/go-hclog"

	"understudy/election"
	"understudy/supervisor/host"
	"understudy/supervisor/service"
	"understudy/supervisor/unit"
)

// Config is everything that one supervisor runs.
type Config struct {
	Node     string
	Host     string
	Version  string
	Servers  []string
	Root     string
	Timeout  time.Duration // of the ZooKeeper session
	Floor    time.Duration // no server ever grants less; 0: unknown
	Auth     *election.Auth
	Agent    *Agent    // nil: no other node can ask
	Watchdog *Watchdog // nil: none is used
	Services []Service
	Warnings []string      // dangerous settings, a line each, for the status
	Changes  <-chan Change // changes of the config while it runs; nil: none
	Logger   hclog.Logger
	TLS      *election.TLS          // nil: plain
	Dial     election.DialFunc      // nil: TCP
	Machine  Machine                // nil: this one
	Observer Observer               // nil: none
	Pulse    <-chan chan<- struct{} // requests for a sign of life: answered while the supervisor's loops run
	Hurry    <-chan struct{}        // closed when a stop must be quick: children are killed, not asked
	Thread   chan<- func()          // runs functions on the main thread of the process; nil: no hand-over is possible
	Upgrade  Upgrade
	Broken   func(error) // is told of impossible events, besides the log; nil: only the log is
	Legacy   []byte      // the envelope of a former image of this process; nil: there was none

	// Strangers says that strangers reach the servers, too, and may end any session at any moment: then the loss of a lock does not prove that
	// its holder's lease has ended.
	Strangers bool
}

// Upgrade lets a supervisor become another image of its process, usually another version; children do not notice.
type Upgrade struct {
	Asked  <-chan struct{}           // nil: it never does
	Become func(legacy []byte) error // execs; returns only if that fails
}

// Change is the result of reading the config again.
type Change struct {
	Services []Service
	Fault    string   // why the config is not taken up; then the services stay as they are
	Warnings []string // dangerous settings of the config that was taken up
}

// Service is the config of one service.
type Service = service.Conf

// Machine is the host, as a supervisor sees it.
type Machine = host.Machine

// Guard is its two guardians.
type Guard = host.Guard

// Tree is a program and all processes that it forks.
type Tree = unit.Tree

// Process is a started program.
type Process = unit.Process

// Watchdog is the device that resets this machine when a child outlives its lease.
type Watchdog = service.Watchdog
