package child

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"understudy/supervisor/child/box"
	"understudy/supervisor/child/wire"
	"understudy/supervisor/guard"
	"understudy/supervisor/wait"
)

// Tree is a service's programs and all processes that they ever fork. It lives under one epoch; both guardians know it.
type Tree struct {
	guard   *Guard
	guarded *guard.Tree // guarded by guardians.mu
	id      box.TreeID
	alive
	searches wait.Reach

	looking sync.Mutex         // guards seen. Held during a look for strays
	seen    map[processID]bool // in the cgroup, by the newest look
}

// NewTree makes the container for a program and returns when both guardians know how to kill it. A guardian gives release to
// the session closer once this tree is proved dead, if this process cannot release it itself. The name is the service's; a
// suffix after a slash says what else the tree is for.
// ErrLeaseEnded: the epoch is over.
func (g *Guard) NewTree(ctx context.Context, number uint64, name string, release []byte) (*Tree, error) {
	t, err := g.newTree(ctx, number, name, release)
	if err != nil {
		return nil, fmt.Errorf("new tree %s in epoch %d: %w", name, number, err)
	}
	return t, nil
}

func (g *Guard) newTree(ctx context.Context, number uint64, name string, release []byte) (*Tree, error) {
	if len(release) > wire.MaxPacket/2 {
		return nil, wire.ErrPacketTooLarge
	}
	defer g.making.Add(-1)
	if err := g.crowded(int(g.making.Add(1))); err != nil {
		return nil, err
	}
	t := &Tree{guard: g}
	if g.cfg.Container.Kind == box.KindCgroup {
		service, _, _ := strings.Cut(name, "/")
		err := box.Making.Do(func() (err error) {
			t.cgroup, err = box.MakeTreeCgroup(g.cfg.Container.Base, g.cfg.Name+"."+strings.ReplaceAll(name, "/", "."),
				box.TagOf(g.cfg.Root, service))
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	err := box.Making.Do(func() (err error) {
		t.id, err = g.cfg.Container.NewID(name, t.cgroup)
		return err
	})
	if err != nil {
		return nil, errors.Join(err, t.discard())
	}
	err = g.guardians.ask(ctx, func() (seq uint64, err error) {
		t.guarded, seq, err = g.guardians.pair.State.AddTree(wire.Now(), number, t.spec(slices.Clone(release)))
		return seq, err
	})
	switch {
	case err == nil:
		return t, nil
	case t.guarded == nil: // no guardian knows it
		return nil, errors.Join(err, t.discard())
	}
	return nil, errors.Join(err, t.End(context.WithoutCancel(ctx)))
}

// discard removes the container of a tree that no guardian knows yet.
func (t *Tree) discard() error {
	if t.cgroup == nil {
		return nil
	}
	err := t.cgroup.Remove()
	t.cgroup.Close()
	return err
}

// spec describes the tree to its guardians.
func (t *Tree) spec(release []byte) guard.TreeSpec {
	return guard.TreeSpec{Release: release, Name: t.id.Name, Of: t, Ref: func() *guard.Ref {
		if t.cgroup == nil || t.cgroup.Removed() { // P3: otherwise a new guardian would not even hold processes that have left it
			return nil
		}
		return &guard.Ref{Kind: box.KindCgroup, Path: t.cgroup.Path}
	}}
}

// ID names the tree on this machine in this boot: enough for any process to find it, and to kill it.
func (t *Tree) ID() box.TreeID { return t.id }

// Move has the tree end with another epoch from now on, and returns when both guardians know that. release replaces that of its making.
// After an error the caller has to end the tree: one of them may know.
func (t *Tree) Move(ctx context.Context, number uint64, release []byte) error {
	g := t.guard
	err := g.guardians.askWith(ctx, release, func(release []byte) (uint64, error) { return t.guarded.Move(wire.Now(), number, release) })
	if err != nil {
		return fmt.Errorf("move tree %s to epoch %d: %w", t.id.Name, number, err)
	}
	g.watchdog.mayDisarm()
	return nil
}

// Kill kills the whole tree. nil says that its death is proved; then the tree can be used again, as long as the epoch is not
// over.
func (t *Tree) Kill(ctx context.Context) error {
	if err := t.guarded.Kill(ctx, killHands{t}, false); err != nil {
		return fmt.Errorf("kill tree %s: %w", t.id.Name, err)
	}
	return nil
}

// End kills the tree and removes its container. nil says that its death is proved, and that no fork can come late.
func (t *Tree) End(ctx context.Context) error {
	if err := t.guarded.Kill(ctx, killHands{t}, true); err != nil {
		return fmt.Errorf("end tree %s: %w", t.id.Name, err)
	}
	return nil
}

// killHands kill what a tree's parts are, and tell the guardians about its death.
type killHands struct{ *Tree }

// Change implements guard.KillHands.
func (t killHands) Change(do func()) {
	defer t.guard.guardians.lock()()
	do()
}

// KillNow implements guard.KillHands.
func (t killHands) KillNow() { t.strike() }

// Parts implements guard.KillHands.
func (t killHands) Parts() (parts []guard.Part, container guard.Awaited, release func()) {
	all := t.targets()
	for _, p := range all {
		parts = append(parts, guard.Part{Awaited: box.Awaited{Box: p.box}, Once: p.stub == nil})
	}
	if t.cgroup != nil {
		container = box.Awaited{Box: t.cgroup}
	}
	return parts, container, func() { t.looked(all) }
}

// Dead implements guard.KillHands.
func (t killHands) Dead(end bool) (err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if end {
		t.closed = true
		if armed, _ := t.guarded.Armed(); armed {
			t.guard.watchdog.mayDisarm()
		}
	}
	for _, p := range slices.Clone(t.parts) {
		err = errors.Join(err, p.box.Remove())
		p.shed()
	}
	if end && t.cgroup != nil {
		t.cgroup.Close()
	}
	return err
}

// NoteUndos tells the guardians how to undo what the tree's processes are going to do beside themselves, and returns when both know. From
// then on they undo it when its lease has ended, once the tree is dead, and give the release to the session closer only after that.
func (t *Tree) NoteUndos(ctx context.Context, note []byte) error {
	err := t.guard.guardians.askWith(ctx, note, func(note []byte) (uint64, error) { return t.guarded.NoteUndos(wire.Now(), note) })
	if err != nil {
		return fmt.Errorf("tell the guardians how to undo what is done in tree %s: %w", t.id.Name, err)
	}
	return nil
}

// ReportUndone tells the guardians that what the dead tree's processes did is undone; or that this process keeps that for its next session.
func (t *Tree) ReportUndone(undone bool) {
	defer t.guard.guardians.lock()()
	t.guarded.ReportUndone(undone)
}

// Unproved adds live processes of the tree to an unproved death, also those that have left its cgroup and removed that.
func (t *Tree) Unproved(err error) error {
	alive, ok := errors.AsType[*box.AliveError](box.Unproved(t.id, err))
	if !ok {
		return err
	}
	for _, one := range t.firsts() {
		if gone, err := one.Dead(); alive.Pid == 0 && !gone && err == nil {
			alive.Look(one.Pid)
		}
	}
	return alive
}
