package service

import (
	"context"
	"time"

	"github.com/hashicorp/go-hclog"

	"understudy/election"
	"understudy/fencing/agent"
	"understudy/supervisor/config"
	"understudy/supervisor/control"
	"understudy/supervisor/failsafe"
	"understudy/supervisor/host"
	"understudy/supervisor/replica"
	"understudy/supervisor/unit"
)

// LocalNode is all that the services of a node share.
type LocalNode struct {
	Self     election.Node
	Root     string // of the cluster in ZooKeeper
	Cluster  string // tells one cluster's files on this machine from another's
	Machine  host.Machine
	Guard    func() host.Guard // once the guardians stand; no stay begins before
	Commands *unit.Commands
	Promises *failsafe.Promises
	Spread   *Spread
	Watchdog *config.Watchdog                        // nil: none is used
	Memory   Memory                                  // nil: there is none
	Notes    func(service string) unit.Notes         // where pending undos are kept; nil: in files
	Copies   func(service, dir string) replica.Store // where is kept what a copy has followed; nil: in files
	// Lacks is why this machine could not start a service now, which may take long to find out; nil: that is never looked at.
	Lacks        func(config.Service) error
	Links        Links                          // nil: programs alone tell that an address has no link
	AgentAddress func(*election.Session) string // where other nodes ask this one; "": it has no agent
	AskAgent     *agent.Method                  // how this node asks others; nil: it has no agent
	Observer     Observer
	Logger       hclog.Logger
	Hurry        <-chan struct{}           // closed when a stop must be quick
	Died         func(session string) bool // see witness.Prover; nil: that is known of none
	Broken       func(error)               // is told of impossible events; nil: only the log is
}

// Observer is told what happens, while it happens: it must return at once.
type Observer interface {
	// State tells each change of a service's state.
	State(control.LocalStatus)
	// Fenced tells the outcome of fencing a previous active node. by is empty when fencing was refused.
	Fenced(service, by string, took time.Duration)
	// Restarted tells that a service's programs are started again where they were.
	Restarted(service string)
	// Claimed tells that another machine claims an address of a service that is active here.
	Claimed(service string)
	// Announced tells that the other nodes can see this node's part in a service.
	Announced(service string)
}

// Links tells, until ctx ends, why an address of an active service has no link here, and "" when it has one again: in the place of a
// program that does.
type Links func(ctx context.Context, service string, tell func(why string))
