// Package host is a machine as a supervisor sees it: its clock, its processes, its guardians. This is the real one; the simulation has
// another.
package host

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/hashicorp/go-hclog"

	"understudy/fencing"
	"understudy/supervisor/child"
	"understudy/supervisor/service"
	"understudy/supervisor/unit"
	"understudy/supervisor/witness"
)

// Machine is a host: its clock, its processes, and how they are ended.
type Machine interface {
	service.Machine
	Identity() (child.Host, error)
	// Guard finds out how process trees can be held, as mode wishes, and starts the guardians.
	Guard(ctx context.Context, mode, node string, log hclog.Logger) (Guard, error)
	// Adopt goes on with the guardians that a former image of this process has handed over.
	Adopt(ctx context.Context, guard json.RawMessage, node string, log hclog.Logger) (Guard, error)
}

// Guard is two guardians, as child.Guard describes them.
type Guard interface {
	service.Guard
	Run(ctx context.Context) error
	Begin(epoch uint64, ticket []byte) error
	Extend(epoch uint64, deadline time.Duration) error
	Shorten(ctx context.Context, epoch uint64, deadline time.Duration, w child.Watchdog) error
	Cause(epoch uint64) error
	// HandOver calls do while nothing of the guardians, of one lease and so many trees, changes; Adopted finds a tree in what was
	// handed over.
	HandOver(ctx context.Context, epoch uint64, trees int, do func(guard json.RawMessage) error) error
	Adopted(tree json.RawMessage) (unit.Tree, bool)
	// Lend gives the guardians what they need to answer in place of a supervisor that is dead or frozen; Lent takes a former image's
	// listener back, nil when there is none.
	Lend(listener *os.File, note []byte) error
	Lent() (*os.File, error)
	WatchdogArmed() bool
}

// This is the machine that this process runs on. thread takes what has to run on the main thread, nil where nothing is handed over; root tells
// the cgroups of this cluster's services from those of others.
func This(thread chan<- func(), root string) Machine { return thisMachine{thread, root} }

type thisMachine struct {
	thread chan<- func()
	root   string
}

func (thisMachine) Identity() (child.Host, error) { return child.Identity() }

func (thisMachine) Now() time.Duration { return child.Now() }

func (m thisMachine) Guard(ctx context.Context, mode, node string, log hclog.Logger) (Guard, error) {
	box, err := child.Probe(ctx, mode, "", log)
	if err != nil {
		return nil, fmt.Errorf("contain process trees: %w", err)
	}
	g, err := child.StartGuard(ctx, child.GuardConfig{Container: box, Logger: log.Named("guard"), Name: node, Root: m.root, Thread: m.thread})
	if err != nil {
		return nil, fmt.Errorf("start the guardians: %w", err)
	}
	return thisGuard{g, box.Kind}, nil
}

func (m thisMachine) Adopt(ctx context.Context, guard json.RawMessage, node string, log hclog.Logger) (Guard, error) {
	g, err := child.AdoptGuard(ctx, child.GuardConfig{Logger: log.Named("guard"), Name: node, Root: m.root, Thread: m.thread}, guard)
	if err != nil {
		return nil, err
	}
	return thisGuard{g, g.Container().Kind}, nil
}

func (thisMachine) KillTree(ctx context.Context, id json.RawMessage) error {
	return witness.KillTree(ctx, id)
}

func (thisMachine) Outlasted(id json.RawMessage, p fencing.Process) error {
	return witness.Outlasted(id, p)
}

type thisGuard struct {
	*child.Guard
	kind string
}

func (g thisGuard) Kind() string { return g.kind }

func (g thisGuard) NewTree(ctx context.Context, epoch uint64, name string, release []byte) (unit.Tree, error) {
	t, err := g.Guard.NewTree(ctx, epoch, name, release)
	if err != nil {
		return nil, err
	}
	return thisTree{t}, nil
}

func (g thisGuard) Adopted(id json.RawMessage) (unit.Tree, bool) {
	var tree child.TreeID
	if json.Unmarshal(id, &tree) != nil {
		return nil, false
	}
	t, ok := g.Guard.Adopted(tree)
	return thisTree{t}, ok
}

func (g thisGuard) Leftover(ctx context.Context, service string, tree json.RawMessage) *child.Leftover {
	var id child.TreeID
	if json.Unmarshal(tree, &id) != nil {
		id = child.TreeID{} // it names nothing here
	}
	return g.Guard.Leftover(ctx, service, id)
}

type thisTree struct{ *child.Tree }

func (t thisTree) Kill(ctx context.Context) error {
	return t.Unproved(t.Tree.Kill(ctx))
}

func (t thisTree) End(ctx context.Context) error { return t.Unproved(t.Tree.End(ctx)) }

func (t thisTree) ID() (json.RawMessage, error) { return json.Marshal(t.Tree.ID()) }

func (t thisTree) Start(ctx context.Context, spec child.Spec) (unit.Process, error) {
	p, err := t.Tree.Start(ctx, spec)
	if err != nil {
		return nil, err
	}
	return p, nil
}

func (t thisTree) Process(pid int) (unit.Process, bool) {
	p, ok := t.Tree.Process(pid)
	return p, ok
}
