package child

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"

	"understudy/supervisor/child/box"
	"understudy/supervisor/child/device"
	"understudy/supervisor/child/inside"
	"understudy/supervisor/child/reexec"
	"understudy/supervisor/child/wire"
	"understudy/supervisor/guard"
)

// AdoptGuard is StartGuard for a process whose previous image has handed over its guardians and trees. On an error this process has
// to end: then its guardians act as after a supervisor's death. The process must not have forked before.
func AdoptGuard(ctx context.Context, cfg GuardConfig, state json.RawMessage) (*Guard, error) {
	g, err := adoptGuard(ctx, cfg, state)
	if err != nil {
		return nil, fmt.Errorf("take the guardians over: %w", err)
	}
	return g, nil
}

func adoptGuard(ctx context.Context, cfg GuardConfig, state json.RawMessage) (*Guard, error) {
	var c carried
	if err := json.Unmarshal(state, &c); err != nil {
		return nil, err
	}
	cfg.Container = c.Container
	g := newGuard(cfg)
	l := guard.Handover{Seq: c.Seq, Trees: c.Trees}
	if c.Watchdog != nil {
		g.watchdog.device = &device.Device{File: reexec.TakeFile(c.Watchdog.File, "watchdog"), Timeout: c.Watchdog.Timeout,
			Permanent: c.Watchdog.Permanent}
		l.Timeout, l.Device = c.Watchdog.Timeout, g.watchdog.device.File
	}
	for i, s := range c.Guardians {
		process, err := s.adopt(i)
		if err != nil {
			return nil, err
		}
		g.guardians.at[i], l.Acked[i] = process, s.Acked
	}
	for _, e := range append([]carriedLease{c.Lease}, c.Others...) {
		one := guard.HandoverLease{Number: e.Number, Ticket: e.Ticket, Deadline: e.Deadline}
		for _, t := range e.Trees {
			tree, err := g.adoptTree(t)
			if err != nil {
				return nil, fmt.Errorf("tree %s: %w", t.ID.Name, err)
			}
			one.Trees = append(one.Trees, tree)
		}
		l.Leases = append(l.Leases, one)
	}
	unlock := g.guardians.lock()
	var numbers [2]uint64
	g.guardians.pair, numbers = guard.Adopt(wire.Now(), guardianHands{g.guardians}, l)
	for i, s := range g.guardians.at {
		s.number = numbers[i]
	}
	for _, e := range g.guardians.pair.State.Leases() {
		for _, t := range e.Trees() {
			t.Spec.Of.(*Tree).guarded = t
		}
	}
	unlock()
	g.guardians.rouse(ctx)
	return g, nil
}

func (c carriedGuardian) adopt(index int) (*guardianProcess, error) {
	held, err := box.HoldProcess(c.Pid, c.Start)
	if err == nil && held == nil {
		err = errors.New("it is not there") // it cannot have been reaped but by us
	}
	if err != nil {
		return nil, fmt.Errorf("guardian %d: %w", index+1, err)
	}
	process, err := os.FindProcess(c.Pid)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("guardian %d: %w", index+1, err), held.Close())
	}
	return &guardianProcess{pid: c.Pid, process: process, pidfd: held, link: wire.Link{File: reexec.TakeFile(c.Socket, "ours")}}, nil
}

func (g *Guard) adoptTree(c carriedTree) (l guard.HandoverTree, err error) {
	t := &Tree{guard: g, id: c.ID, alive: alive{runs: c.Runs}}
	if c.ID.Kind == box.KindCgroup {
		t.cgroup, err = c.openCgroup()
		if err != nil {
			return l, err
		}
		t.cgroup.Finds = false // all that was started in it is adopted
	}
	l = guard.HandoverTree{Number: c.Number, Spec: t.spec(c.Release), Armed: c.Armed, After: c.After, Effects: c.Effects}
	for _, p := range c.Parts {
		if err := p.adopt(t); err != nil {
			return l, err
		}
	}
	for _, p := range t.parts {
		if ref := p.ref(); ref != nil {
			l.Members = append(l.Members, guard.HeldProcess{Ref: *ref, Along: p.deadSignal()})
		}
	}
	return l, nil
}

// openCgroup opens the tree's cgroup, or makes a GoneTreeCgroup if that was removed: a program that has left it may still live.
func (c carriedTree) openCgroup() (*box.TreeCgroup, error) {
	if c.Removed {
		return box.GoneTreeCgroup(c.ID.Path), nil
	}
	l, err := c.ID.OpenTreeCgroup()
	if err == nil && l == nil { // just now
		l = box.GoneTreeCgroup(c.ID.Path)
	}
	return l, err
}

func (c carriedPart) adopt(t *Tree) error {
	if c.Found {
		return t.adoptStray(c)
	}
	p := &Process{tree: t, pid: c.Pid, done: make(chan struct{})}
	if c.Ended != nil {
		p.status = *c.Ended
		close(p.done)
	}
	if c.Stub != nil {
		s, err := c.Stub.adopt(t.id)
		if err != nil {
			return err
		}
		p.part = newPart(t, s.Box, s)
		p.signal = s.Signal
		t.guard.guardians.tasks.Go(func() { s.follow(p, nil) })
	} else {
		in, err := t.cgroup.AdoptRun(c.Path)
		if err != nil {
			return err
		}
		p.part = newPart(t, in, nil)
		p.part.path = in.Path
		p.signal = func(syscall.Signal) error { return os.ErrProcessDone }
		if c.Ended == nil {
			if err := p.adopt(c.Start); err != nil {
				return err
			}
		}
	}
	p.part.proc = p
	t.parts = append(t.parts, p.part)
	return nil
}

// adopt waits for a program that the previous image has forked. If that reaped it in its last moment, its exit status is
// unknown.
func (p *Process) adopt(start uint64) error {
	held, err := box.HoldProcess(p.pid, start)
	if err != nil {
		return err
	}
	if held == nil {
		p.status = ExitStatus{Code: -1, Unknown: true}
		close(p.done)
		return nil
	}
	defer held.Close()
	in := p.part.box.(*box.RunCgroup)
	if err := p.part.hold(in, p.pid); err != nil {
		return err
	}
	if err := in.Name(p.part.first); err != nil && !in.Removed() { // a previous version may not have done so
		// P2: a later supervisor would not find the program outside its cgroup. The kill costs its own service, and nothing else.
		p.tree.guard.cfg.Logger.Error("killing a program that a later supervisor could not find", "tree", p.tree.id.Name, "pid", p.pid,
			"error", err)
		_ = p.part.box.KillNow() // the goroutine that ends it strikes again
	}
	process, err := os.FindProcess(p.pid) // while we hold it, its pid is its own
	if err != nil {
		return err
	}
	p.signal = func(sig syscall.Signal) error { return process.Signal(sig) }
	p.tree.guard.guardians.tasks.Go(func() { p.reap(process) })
	return nil
}

// reap waits for a program's end.
func (p *Process) reap(process *os.Process) {
	state, err := box.WaitFor(process)
	p.status = ExitStatus{Code: -1, Unknown: true}
	if err == nil {
		p.status = statusOf(state.Sys().(syscall.WaitStatus))
		p.status.OutOfMemory = p.status.Code != 0 && box.OutOfMemory(p.part.path)
	}
	close(p.done)
}

func (c carriedStub) adopt(id box.TreeID) (*stub, error) {
	held, err := box.HoldProcess(c.Pid, c.Start)
	if err == nil && held == nil {
		err = errors.New("its stub is not there")
	}
	if err != nil {
		return nil, err
	}
	s := &inside.Stub{Pid: c.Pid, Start: c.Start, Link: wire.Link{File: reexec.TakeFile(c.Socket, "ours")}, Box: &box.InitBox{Pidfd: held}}
	if id.Kind == box.KindWalk {
		s.DeadSignal = reexec.TakeFile(c.DeadSignal, "dead signal")
		s.Box = &box.WalkBox{Pid: c.Pid, Pidfd: held, DeadSignal: s.DeadSignal}
	}
	s.Process, err = os.FindProcess(c.Pid)
	if err != nil {
		return nil, errors.Join(err, held.Close())
	}
	return &stub{Stub: s}, nil
}

// Adopted finds a tree that was taken over.
func (g *Guard) Adopted(id box.TreeID) (*Tree, bool) {
	defer g.guardians.lockToRead()()
	all := g.guardians.trees()
	if i := slices.IndexFunc(all, func(t *Tree) bool { return t.id == id }); i >= 0 {
		return all[i], true
	}
	return nil, false
}

// Container is how the guard's trees are contained.
func (g *Guard) Container() box.Container { return g.cfg.Container }
