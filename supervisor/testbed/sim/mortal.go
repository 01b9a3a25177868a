package sim

import (
	"context"
	"os"

	"understudy/supervisor/child"
	"understudy/supervisor/guard"
)

// What there is to kill: a start, by its pidfd and its own cgroup; the container around all of them; and the whole tree. World.mu guards
// them. The code that kills them is that which kills real ones.

// start is a process that a supervisor forked, wherever it is, and its offspring.
type start struct{ *proc }

// KillNow implements guard.Killable.
func (s start) KillNow() error {
	s.kill()
	s.offspring(func(p *proc) {
		if !p.nature.headless {
			p.kill()
		}
	})
	return nil
}

// KillHarder implements guard.Killable.
func (s start) KillHarder() error {
	s.offspring((*proc).kill)
	return nil
}

// Seal implements guard.Killable.
func (start) Seal() {}

// Dead implements guard.Killable.
func (s start) Dead() (bool, error) {
	dead := s.dead
	s.offspring(func(*proc) { dead = false })
	return dead, nil
}

// Remove implements guard.Killable.
func (start) Remove() error { return nil }

func (s start) offspring(visit func(*proc)) {
	for _, p := range s.tree.all() {
		if p.parent == s.proc && !p.moved {
			visit(p)
		}
	}
}

// container holds all processes of a tree but for those that have left it.
type container struct{ *tree }

// KillNow implements guard.Killable.
func (c container) KillNow() error {
	for _, p := range c.all() {
		if !p.outside() && !p.nature.headless {
			p.kill()
		}
	}
	return nil
}

// KillHarder implements guard.Killable: it kills them one by one.
func (c container) KillHarder() error {
	for _, p := range c.all() {
		if !p.outside() {
			p.kill()
		}
	}
	return nil
}

// Seal implements guard.Killable.
func (c container) Seal() { c.removed = true }

// Dead implements guard.Killable.
func (c container) Dead() (bool, error) {
	for p := range c.procs {
		if !p.outside() {
			return false, nil
		}
	}
	return true, nil
}

// Remove implements guard.Killable.
func (c container) Remove() error {
	if empty, _ := c.Dead(); !empty {
		return os.ErrExist
	}
	c.removed = true
	if c.aside != "" {
		delete(c.host.trees, c.id.Name) // nobody looks for it
	}
	return nil
}

// whole is a tree as those hold it who were told of all that was started in it, or find that.
type whole struct{ container }

// KillNow implements guard.Killable.
func (t whole) KillNow() error {
	t.strike()
	for _, p := range t.all() {
		if p.hidden() {
			p.die(child.ExitStatus{})
		}
	}
	return nil
}

// Dead implements guard.Killable: what has left the container is dead when its own pidfd says so.
func (t whole) Dead() (bool, error) { return len(t.procs) == 0, nil }

// awaited is what a process behind a gate kills, and waits for. To one that is no more everything seems done: nobody is there to hear it.
type awaited struct {
	of      *tree
	by      *gate
	box     guard.Killable
	changed chan struct{} // closed at the first change since the last look
}

func (a *awaited) do(f func() error) error {
	if !a.by.pass() {
		return nil
	}
	a.of.host.w.mu.Lock()
	defer a.of.host.w.mu.Unlock()
	return f()
}

// KillNow implements guard.Awaited.
func (a *awaited) KillNow() error { return a.do(a.box.KillNow) }

// KillHarder implements guard.Awaited.
func (a *awaited) KillHarder() error { return a.do(a.box.KillHarder) }

// Seal implements guard.Awaited.
func (a *awaited) Seal() {
	_ = a.do(func() error {
		a.box.Seal()
		return nil
	})
}

// Dead implements guard.Awaited.
func (a *awaited) Dead() (dead bool, err error) {
	dead = true
	err = a.do(func() (err error) {
		a.changed = a.of.changed
		dead, err = a.box.Dead()
		return err
	})
	return dead, err
}

// Remove implements guard.Awaited.
func (a *awaited) Remove() error { return a.do(a.box.Remove) }

// Wait implements guard.Awaited.
func (a *awaited) Wait(ctx context.Context) {
	select {
	case <-a.changed:
	case <-ctx.Done():
	}
}

// kill kills all of a tree for a process behind a gate.
func (t *tree) kill(ctx context.Context, by *gate) error {
	return guard.KillUntilDead(ctx, &awaited{of: t, by: by, box: whole{container{t}}}, true)
}

// killHands kill a tree for the supervisor that made it.
type killHands struct{ *handle }

// Change implements guard.KillHands.
func (t killHands) Change(do func()) {
	if !t.guard.inc.pass() {
		return
	}
	t.guard.w.mu.Lock()
	defer t.guard.w.mu.Unlock()
	do()
	t.guard.changed()
}

// KillNow implements guard.KillHands.
func (t killHands) KillNow() { t.Change(t.strike) }

// Parts implements guard.KillHands.
func (t killHands) Parts() (parts []guard.Part, around guard.Awaited, release func()) {
	t.Change(func() {
		for _, p := range t.all() {
			if p.parent == nil || p.found {
				parts = append(parts, guard.Part{Awaited: t.awaits(start{p}), Once: true})
			}
		}
	})
	return parts, t.awaits(container{t.tree}), func() {}
}

func (t *handle) awaits(box guard.Killable) *awaited {
	return &awaited{of: t.tree, by: t.guard.inc.gate, box: box}
}

// Dead implements guard.KillHands.
func (t killHands) Dead(end bool) error {
	if armed, _ := t.guarded.Armed(); armed && end {
		t.guard.watchdog.mayDisarm()
	}
	return nil
}
