// Package host is a machine as a supervisor sees it: its clock, its processes, its guardians. This is the real one; the simulation has
// another.
package host

import (
	"context"
	"encoding/json"
	"fmt"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"

	"understudy/fencing"
	"understudy/supervisor/child"
	"understudy/supervisor/child/box"
	"understudy/supervisor/child/containment"
	"understudy/supervisor/child/wire"
	"understudy/supervisor/witness"
)

// Machine is a host: its clock, its processes, and how they are ended.
type Machine interface {
	Now() time.Duration // CLOCK_BOOTTIME
	// KillTree ends a tree that another supervisor of this machine made. nil: its death is proved.
	KillTree(ctx context.Context, id json.RawMessage) error
	// Outlasted looks for a process of such a tree that was seen alive, whatever the tree's containment shows by now: a process that leaves
	// its cgroup, and removes that, is seen no other way. nil: it is dead, or none was seen.
	Outlasted(id json.RawMessage, seen fencing.ProcessID) error
	// PendingEffects names the effects of a target that was on this machine which are not undone, whichever supervisor had them.
	PendingEffects(t fencing.Target, boot string) []string
	Identity() (box.Host, error)
	// Guard finds out how process trees can be held, as mode wishes, and starts the guardians.
	Guard(ctx context.Context, mode, node string, log hclog.Logger) (Guard, error)
	// Adopt goes on with the guardians that a previous image of this process has handed over.
	Adopt(ctx context.Context, guard json.RawMessage, node string, log hclog.Logger) (Guard, error)
}

// Guard is two guardians, as child.Guard describes them.
type Guard interface {
	Kind() string
	Pid() int
	Over(epoch uint64) <-chan struct{}
	NewTree(ctx context.Context, epoch uint64, name string, release []byte) (Tree, error)
	// Leftover ends the processes that previous supervisors have left of a service on this machine, and those of a tree that a breadcrumb
	// names (nil: none). It returns those that it could not prove dead before ctx ended.
	Leftover(ctx context.Context, service string, tree json.RawMessage) *box.Leftover
	// CheckWatchdog reports whether the watchdog could be armed for a tree.
	CheckWatchdog(ctx context.Context, w child.Watchdog) error
	Run(ctx context.Context) error
	Begin(epoch uint64, ticket []byte) error
	Finish(epoch uint64) error
	Extend(epoch uint64, deadline time.Duration) error
	Cause(epoch uint64) error
	// HandOver calls do while nothing of the guardians, of these leases and so many trees of each, changes; Adopted finds a tree in what
	// was handed over.
	HandOver(ctx context.Context, trees map[uint64]int, do func(guard json.RawMessage) error) error
	Adopted(tree json.RawMessage) (Tree, bool)
	WatchdogArmed() bool
	// Maker is the supervisor as the maker of its trees.
	Maker() (box.Maker, error)
}

// Tree is a program and all processes that it forks, as child.Tree describes it.
type Tree interface {
	ID() (json.RawMessage, error)
	// Arm makes the watchdog reset the machine unless the tree is proved dead soon after its lease's end.
	Arm(ctx context.Context, w child.Watchdog) error
	// Move has it end with another lease from now on; after an error it has to be ended.
	Move(ctx context.Context, epoch uint64, release []byte) error
	Start(ctx context.Context, spec child.Spec) (Process, error)
	// Process finds a program of a tree that was handed over.
	Process(pid int) (Process, bool)
	Owns(pid int) bool
	// Strays are its processes outside of its container, which is where the kernel kills them: each of them is held by itself. It may hang.
	Strays() ([]child.Stray, error)
	// NoteUndos tells the guardians how to undo what is done in the tree, before it is done; ReportUndone, once the tree is dead, that it
	// is undone, or that this process keeps it for its next session.
	NoteUndos(ctx context.Context, note json.RawMessage) error
	ReportUndone(undone bool)
	// Kill kills all in it and proves it dead; then the tree can be used
	// again. End also removes its container: nothing can be started in it.
	Kill(ctx context.Context) error
	End(ctx context.Context) error
}

// Process is a started program, as child.Process describes it.
type Process interface {
	Pid() int
	Done() <-chan struct{}
	Wait(ctx context.Context) (child.ExitStatus, error)
	Signal(sig syscall.Signal) error
	AskLeftovers(sig syscall.Signal) (left int)
	Kill(ctx context.Context) error
}

// This is the machine that this process runs on. thread takes what has to run on the main thread, nil where nothing is handed over; root
// tells the cgroups of this cluster's services from those of others; jsonLog is for the guardians' last words; pendingEffects is Machine's.
func This(thread chan<- func(), root string, jsonLog bool, pendingEffects func(t fencing.Target, boot string) []string) Machine {
	return thisMachine{thread, root, jsonLog, pendingEffects}
}

type thisMachine struct {
	thread         chan<- func()
	root           string
	jsonLog        bool
	pendingEffects func(t fencing.Target, boot string) []string
}

func (thisMachine) Identity() (box.Host, error) { return box.Identity() }

func (thisMachine) Now() time.Duration { return wire.Now() }

func (m thisMachine) Guard(ctx context.Context, mode, node string, log hclog.Logger) (Guard, error) {
	container, err := containment.Choose(ctx, mode, log)
	if err != nil {
		return nil, fmt.Errorf("contain process trees: %w", err)
	}
	g, err := child.StartGuard(ctx,
		child.GuardConfig{Container: container, Logger: log.Named("guard"), Name: node, Root: m.root, JSONLog: m.jsonLog, Thread: m.thread})
	if err != nil {
		return nil, fmt.Errorf("start the guardians: %w", err)
	}
	return thisGuard{g, container.Kind, m.root}, nil
}

func (m thisMachine) Adopt(ctx context.Context, guard json.RawMessage, node string, log hclog.Logger) (Guard, error) {
	g, err := child.AdoptGuard(ctx,
		child.GuardConfig{Logger: log.Named("guard"), Name: node, Root: m.root, JSONLog: m.jsonLog, Thread: m.thread}, guard)
	if err != nil {
		return nil, err
	}
	return thisGuard{g, g.Container().Kind, m.root}, nil
}

func (thisMachine) KillTree(ctx context.Context, id json.RawMessage) error {
	return witness.KillTree(ctx, id)
}

func (thisMachine) Outlasted(id json.RawMessage, p fencing.ProcessID) error {
	return witness.Outlasted(id, p)
}

func (m thisMachine) PendingEffects(t fencing.Target, boot string) []string {
	return m.pendingEffects(t, boot)
}

type thisGuard struct {
	*child.Guard
	kind, root string
}

func (g thisGuard) Kind() string { return g.kind }

func (g thisGuard) Maker() (box.Maker, error) { return g.Container().Maker() }

func (g thisGuard) NewTree(ctx context.Context, epoch uint64, name string, release []byte) (Tree, error) {
	t, err := g.Guard.NewTree(ctx, epoch, name, release)
	if err != nil {
		return nil, err
	}
	return thisTree{t, g.kind, g.root}, nil
}

func (g thisGuard) Adopted(id json.RawMessage) (Tree, bool) {
	var tree box.TreeID
	if json.Unmarshal(id, &tree) != nil {
		return nil, false
	}
	t, ok := g.Guard.Adopted(tree)
	return thisTree{t, g.kind, g.root}, ok
}

func (g thisGuard) Leftover(ctx context.Context, service string, tree json.RawMessage) *box.Leftover {
	var id box.TreeID
	if json.Unmarshal(tree, &id) != nil {
		id = box.TreeID{} // it names nothing here
	}
	return g.Guard.Leftover(ctx, service, id)
}

type thisTree struct {
	*child.Tree
	kind, root string
}

// UndoNote is what a guardian has to know to undo what was done in a tree: the note of whoever did it, and how a tree is contained here.
type UndoNote struct {
	Note    json.RawMessage `json:"note"`
	Root    string          `json:"root"`
	Contain string          `json:"contain"`
}

func (t thisTree) NoteUndos(ctx context.Context, note json.RawMessage) error {
	data, err := json.Marshal(UndoNote{note, t.root, t.kind})
	if err != nil {
		return err
	}
	return t.Tree.NoteUndos(ctx, data)
}

func (t thisTree) Kill(ctx context.Context) error {
	return t.Unproved(t.Tree.Kill(ctx))
}

func (t thisTree) End(ctx context.Context) error { return t.Unproved(t.Tree.End(ctx)) }

func (t thisTree) ID() (json.RawMessage, error) { return json.Marshal(t.Tree.ID()) }

func (t thisTree) Start(ctx context.Context, spec child.Spec) (Process, error) {
	p, err := t.Tree.Start(ctx, spec)
	if err != nil {
		return nil, err
	}
	return p, nil
}

func (t thisTree) Process(pid int) (Process, bool) {
	p, ok := t.Tree.Process(pid)
	return p, ok
}
