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

// Node is what all services of a node share.
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
	Hurry    <-chan struct{} // closed when stopping is to be quick
	Broken   func(error)     // told of what cannot be; nil: the log alone is
}

// Agent is how other nodes ask this one, and this one asks others.
type Agent struct {
	At  func(*election.Session) string // where others reach it; ""; it has none
	Ask *agent.Method                  // nil: it has none
}

// Machine is the host as a service sees it.
type Machine interface {
	Now() time.Duration // CLOCK_BOOTTIME
	// KillTree ends a tree that another supervisor of this machine made. nil: its death is proved.
	KillTree(ctx context.Context, id json.RawMessage) error
	// Outlasted looks for a process that was seen alive of such a tree, whatever the tree's containment shows by now: who leaves its
	// cgroup, and removes that, is seen no other way. nil: it is dead, or none was seen.
	Outlasted(id json.RawMessage, seen fencing.Process) error
}

// Guard is the guardians as a service sees them.
type Guard interface {
	Kind() string
	Pid() int
	Finish(epoch uint64) error
	Over(epoch uint64) <-chan struct{}
	NewTree(ctx context.Context, epoch uint64, name string, release []byte) (unit.Tree, error)
	// Leftover ends what supervisors that are no more have left of a service on this machine, and of a tree that a breadcrumb names
	// (nil: none), and tells what of it could not be proved dead before ctx ended.
	Leftover(ctx context.Context, service string, tree json.RawMessage) *child.Leftover
	// CheckWatchdog tells whether a tree could be armed.
	CheckWatchdog(ctx context.Context, w child.Watchdog) error
}

// Observer is told what happens, while it happens: it must return at once.
type Observer interface {
	// State tells how a service stands, each time that changes.
	State(State)
	// Fenced tells what came of making sure that a former active is dead. by is empty when that was refused.
	Fenced(service, by string, took time.Duration)
	// Restarted tells that a service's programs are started again where they were.
	Restarted(service string)
}

// State is how a service is on this node.
type State = control.State
