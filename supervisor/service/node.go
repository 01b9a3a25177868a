package service

import (
	"context"
	"encoding/json"
	"time"

	"github.com/hashicorp/go-hclog"

	"understudy/election"
	"understudy/fencing"
	"understudy/fencing/agent"
	"understudy/supervisor/child"
	"understudy/supervisor/control"
	"understudy/supervisor/failsafe"
	"understudy/supervisor/unit"
)

// Node is all that the services of a node share.
type Node struct {
	Self     election.Node
	Cluster  string // tells one cluster's files on this machine from another's
	Machine  Machine
	Guard    func() Guard // once the guardians stand; no stay begins before
	Commands *unit.Commands
	Promises *failsafe.Promises
	Watchdog *Watchdog // nil: none is used
	Agent    Agent
	Observer Observer
	Logger   hclog.Logger
	Hurry    <-chan struct{} // closed when a stop must be quick
	Broken   func(error)     // is told of impossible events; nil: only the log is
}

// Agent is how other nodes ask this one, and this one asks others.
type Agent struct {
	At  func(*election.Session) string // where others reach it; ""; it has none
	Ask *agent.Method                  // nil: it has none
}

// Machine is the host, as a service sees it.
type Machine interface {
	Now() time.Duration // CLOCK_BOOTTIME
	// KillTree ends a tree that another supervisor of this machine made. nil: its death is proved.
	KillTree(ctx context.Context, id json.RawMessage) error
	// Outlasted looks for a process of such a tree that was seen alive, whatever the tree's containment shows by now: a process that leaves its
	// cgroup, and removes that, is seen no other way. nil: it is dead, or none was seen.
	Outlasted(id json.RawMessage, seen fencing.Process) error
}

// Guard is the pair of guardians, as a service sees it.
type Guard interface {
	Kind() string
	Pid() int
	Finish(epoch uint64) error
	Over(epoch uint64) <-chan struct{}
	NewTree(ctx context.Context, epoch uint64, name string, release []byte) (unit.Tree, error)
	// Leftover ends the processes that former supervisors have left of a service on this machine, and those of a tree that a breadcrumb names
	// (nil: none). It returns those that it could not prove dead before ctx ended.
	Leftover(ctx context.Context, service string, tree json.RawMessage) *child.Leftover
	// CheckWatchdog reports whether the watchdog could be armed for a tree.
	CheckWatchdog(ctx context.Context, w child.Watchdog) error
}

// Observer is told what happens, while it happens: it must return at once.
type Observer interface {
	// State tells each change of a service's state.
	State(State)
	// Fenced tells the outcome of fencing a former active node. by is empty when fencing was refused.
	Fenced(service, by string, took time.Duration)
	// Restarted tells that a service's programs are started again where they were.
	Restarted(service string)
}

// State is how a service is on this node.
type State = control.State
