package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/hashicorp/go-hclog"

	"understudy/election"
	"understudy/supervisor/child"
	"understudy/supervisor/config"
	"understudy/supervisor/control"
	"understudy/supervisor/failsafe"
	"understudy/supervisor/host"
	"understudy/supervisor/service/role"
	"understudy/supervisor/unit"
)

// Service is one service on this node, over all sessions. Only the goroutine that serves it calls its methods, except for those that are
// called safe.
type Service struct {
	node         *LocalNode
	name         string
	log          hclog.Logger
	conf         Conf       // as it is in force
	state        role.State // decides
	mem          memory
	inbox        *inbox
	step         atomic.Pointer[step] // nil until it serves; safe
	view         view
	history      history
	unit         *unit.Unit
	trees        trees
	unprovedTree unprovedTree
	breadcrumb   breadcrumb
	copy         *copyHere // of a replicated or warm service; nil: it is neither

	engaged  bool
	finds    atomic.Int32      // an UpgradeState; safe
	carried  *CarriedTerm      // a term that was handed over, or is about to be; nil: there is none
	finished *child.ExitStatus // of a command that runs once
}

// ErrUnproved says that processes of a child may be alive: then the session must not be closed.
var ErrUnproved = errors.New("the program is not proved dead")

// ErrHandover ends a stay in a session without ending the child, if that is possible; otherwise it is a stop.
var ErrHandover = errors.New("another image of this process takes over")

func handing(ctx context.Context) bool { return errors.Is(context.Cause(ctx), ErrHandover) }

// New makes a service from its config.
func New(node *LocalNode, conf Conf) *Service {
	log := node.Logger.With("service", conf.Name)
	var v *Service
	of := unit.Config{
		Service: conf.Name, Node: node.Self.Node, Root: node.Root, Boot: node.Self.Boot, Cluster: node.Cluster, Logger: node.Logger,
		Hurry: node.Hurry, Commands: node.Commands,
		Unlogged: func(why string) { v.view.wellness.losesOutput(why) },
	}
	if node.Notes != nil {
		of.Notes = node.Notes(conf.Name)
	}
	u := unit.New(of)
	v = &Service{
		node: node, name: conf.Name, log: log, conf: conf, inbox: newInbox(node, conf, u, log), unit: u,
	}
	v.mem.preference.node, v.mem.preference.conf = node.Self.Node, &v.conf
	v.mem.restarts.cfg = conf.Restart
	if node.Memory != nil {
		v.mem.keeper.Save = func(k Known) { node.Memory.Save(conf.Name, k) }
	}
	v.history = history{log: log, moves: moves{service: v.name, node: node.Self.Node, intents: &v.inbox.intents, log: log}}
	v.breadcrumb = breadcrumb{
		root: node.Root, self: node.Self, machine: node.Machine, trees: &v.trees, hasPendingEffects: u.HasPendingEffects,
		died: node.Died, log: log,
	}
	v.trees.service = v.name
	v.trees.killNow = func(ctx context.Context, tree host.Tree) { v.breadcrumb.killNow(ctx, nil, tree) }
	v.view = newView(v)
	if v.copy = newCopyHere(node, conf, v); v.copy != nil {
		v.view.fails, v.view.copy = v.copy.unfit, v.copy.local
		if v.copy.compared() {
			v.view.follows = func(w control.ReadWish) string { return v.copy.Follows(w.Lag, w.All) }
		}
	}
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

// Unproved is an error while a process of the service may be alive. It is called while the service does not serve.
func (v *Service) Unproved() error {
	if v.unprovedTree.tree == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", v.name, ErrUnproved)
}

// Gone reports whether nothing is left of a removed service. It is called while the service does not serve.
func (v *Service) Gone() bool {
	alive := v.unprovedTree.tree != nil || v.unprovedTree.seen != ""
	return v.Removed() && v.carried == nil && v.mem.place.Session == 0 && !alive && !v.unit.HasPendingEffects()
}

// Birth is the birth of the folder that the service has seen; SetBirth tells it to a later namesake.
func (v *Service) Birth() election.Birth { return v.mem.birth }

// SetBirth tells a service that has seen no folder which one to expect. It is called while the service does not serve.
func (v *Service) SetBirth(b election.Birth) { v.mem.remember(Known{Birth: b}) }

// Finished is the exit status of a command that runs once, or nil. It is called while the service does not serve.
func (v *Service) Finished() *child.ExitStatus { return v.finished }

// Carries reports whether a term that was handed over is about to go on here.
func (v *Service) Carries() bool { return v.carried != nil }

// Tree finds a tree of the service by its identity, or nil. It is safe.
func (v *Service) Tree(id json.RawMessage) *OwnTree { return v.trees.find(id) }

// Term lets the session's gate end the programs. It is safe.
func (v *Service) Term() failsafe.Term { return &v.trees }

// Show tells the observer the state of a new service.
func (v *Service) Show() { v.view.show() }

// Close ends its copy, waits for its hooks, and closes its log files.
func (v *Service) Close() {
	v.copy.close()
	v.unit.Close()
	v.mem.keeper.Finish()
}

// Serve waits for the lock, and runs terms, until the session or the supervisor ends. It fails only with ErrUnproved.
func (v *Service) Serve(ctx context.Context, s Session) error {
	v.state.Carried = v.carried != nil
	t := newStay(ctx, v, s)
	role.Drive(ctx, v.state, t)
	if handing(ctx) && !v.Removed() { // else Close ends it
		v.copy.part()
	}
	if v.Removed() && v.carried == nil && !v.state.TreeUnproved && !handing(ctx) {
		t.candidacy.leavePrevious(ctx)
		v.copy.leave(s)
	}
	// This session need not stay open for a previous session's tree.
	if u := &v.unprovedTree; v.state.TreeUnproved && (u.tree == nil || u.epoch == s.Epoch) {
		return fmt.Errorf("%s: %w: %s", v.name, ErrUnproved, u.seen)
	}
	return nil
}

// effectsOf are what a service's programs may leave beside processes.
func effectsOf(conf config.Service) election.Effects {
	e := unit.EffectsOf(conf)
	effects := election.Effects{Names: e.Names, UndoMs: e.Undoing.Milliseconds(), NeedProof: e.NeedProof, Survive: e.Survive}
	for _, process := range conf.Processes {
		if slices.Contains(e.Names, process.Name) {
			mount, address, undo := process.Leaves()
			look := election.Look{Name: process.Name, Mount: election.Line(mount), Address: address, Undo: election.Line(undo)}
			effects.Look = append(effects.Look, look)
		}
	}
	return effects
}

// applyConfig puts a changed config in force, and reports whether there was one.
func (v *Service) applyConfig() bool {
	next, ok := v.inbox.given.takeFresh()
	if !ok {
		return false
	}
	v.conf = next
	v.inbox.precheck.configure(next.Service)
	v.mem.preference.relapses.reset() // the service may work with the new config
	v.mem.restarts.cfg = next.Restart
	if v.copy != nil {
		v.copy.Configure(next.Service)
	}
	return true
}
