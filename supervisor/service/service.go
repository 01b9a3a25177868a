package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/hashicorp/go-hclog"

	"understudy/election"
	"understudy/supervisor/child"
	"understudy/supervisor/failsafe"
	"understudy/supervisor/service/role"
	"understudy/supervisor/unit"
)

// Service is one service on this node, over all sessions. Only the goroutine that serves it calls its methods, except for those that are
// called safe.
type Service struct {
	node       *Node
	name       string
	log        hclog.Logger
	conf       Conf       // as it is in force
	state      role.State // decides
	mem        memory
	inbox      *inbox
	view       view
	history    history
	unit       *unit.Unit
	hooks      hooks
	engagement engagement
	local      local

	handover handover
	finished *child.ExitStatus // of a command that runs once
}

// local is the part of a service that is, or was, on this machine.
type local struct {
	trees  trees
	undead undead
	crumbs crumbs
}

// ErrUndead says that processes of a child may be alive: then the session must not be closed.
var ErrUndead = errors.New("the child's death is not proved")

// ErrHandover ends a stay in a session without ending the child, if that is possible; otherwise it is a stop.
var ErrHandover = errors.New("another image of this process takes over")

func handing(ctx context.Context) bool { return errors.Is(context.Cause(ctx), ErrHandover) }

// New makes a service from its config.
func New(node *Node, conf Conf) *Service {
	log := node.Logger.With("service", conf.Name)
	u := unit.New(unit.Config{
		Service: conf.Name, Node: node.Self.Node, Cluster: node.Cluster, Logger: node.Logger, Hurry: node.Hurry, Commands: node.Commands,
	})
	v := &Service{
		node: node, name: conf.Name, log: log, conf: conf, inbox: newInbox(node, conf, u, log), unit: u,
		engagement: engagement{service: conf.Name, promises: node.Promises},
	}
	v.hooks = hooks{unit: u, conf: &v.conf, story: &v.mem.story}
	v.mem.preference.node, v.mem.preference.conf = node.Self.Node, &v.conf
	v.mem.restarts.configure(conf.Restart)
	v.history = history{log: log, moves: moves{service: v.name, node: node.Self.Node, intents: &v.inbox.intents, log: log}}
	v.local.crumbs = crumbs{self: node.Self, machine: node.Machine, trees: &v.local.trees, owes: u.Owes, log: log}
	v.local.trees.service = v.name
	v.local.trees.cut = func(ctx context.Context, tree unit.Tree) { v.local.crumbs.cut(ctx, nil, tree) }
	v.view = newView(v)
	return v
}

// Name is the service's name. It is safe.
func (v *Service) Name() string { return v.name }

// Given is the newest config of the service, in force or about to be. It is safe.
func (v *Service) Given() Conf { return v.inbox.given.get() }

// Give hands a changed config to the service. It is safe.
func (v *Service) Give(c Conf) { v.inbox.given.give(c) }

// Remove tells the service that it is not in the config any more. It is safe.
func (v *Service) Remove() { v.inbox.given.removed.Store(true) }

// Removed reports whether Remove was called. It is safe.
func (v *Service) Removed() bool { return v.inbox.given.removed.Load() }

// Undead is an error while a process of the service may be alive. It is called while the service does not serve.
func (v *Service) Undead() error {
	if v.local.undead.tree == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", v.name, ErrUndead)
}

// Gone reports whether nothing is left of a removed service. It is called while the service does not serve.
func (v *Service) Gone() bool {
	return v.Removed() && v.handover.carried == nil && !v.local.undead.any()
}

// Birth is the birth of the folder that the service has seen; SetBirth tells it to a later namesake.
func (v *Service) Birth() election.Birth { return v.mem.birth }

// SetBirth tells a service that has seen no folder which one to expect. It is called while the service does not serve.
func (v *Service) SetBirth(b election.Birth) { v.mem.born(b) }

// Finished is the exit status of a command that runs once, or nil. It is called while the service does not serve.
func (v *Service) Finished() *child.ExitStatus { return v.finished }

// Carries reports whether a term that was handed over is about to go on here.
func (v *Service) Carries() bool { return v.handover.carried != nil }

// Tree finds a tree of the service by its identity, or nil. It is safe.
func (v *Service) Tree(id json.RawMessage) *Tree { return v.local.trees.find(id) }

// Term lets the session's gate end the programs. It is safe.
func (v *Service) Term() failsafe.Term { return &v.local.trees }

// Show tells the observer the state of a new service.
func (v *Service) Show() { v.view.show() }

// Close waits for its hooks, and closes its log files.
func (v *Service) Close() { v.unit.Close() }

// Serve waits for the lock, and runs terms, until the session or the supervisor ends. It fails only with ErrUndead.
func (v *Service) Serve(ctx context.Context, s Session) error {
	v.state.Carried = v.handover.carried != nil
	role.Drive(ctx, v.state, newHands(ctx, v, s))
	if u := &v.local.undead; v.state.Undead && (u.tree == nil || u.of(s.Epoch)) { // this session need not stay open for a former session's tree
		return fmt.Errorf("%s: %w: %s", v.name, ErrUndead, u.seen)
	}
	return nil
}

// takeUp puts a changed config in force, and reports whether there was one.
func (v *Service) takeUp() bool {
	next, ok := v.inbox.given.take()
	if !ok {
		return false
	}
	v.conf = next
	v.inbox.precheck.configure(next.Precheck)
	v.mem.preference.relapses.reset() // the service may work with the new config
	v.mem.restarts.configure(next.Restart)
	return true
}
