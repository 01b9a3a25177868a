package child

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
)

// inLeaf starts a program in a cgroup of its own, inside the tree's. A launcher becomes it, once both guardians hold the
// launcher: a removed cgroup refuses a late fork, but does not hold processes that leave it.
func (t *attempt) inLeaf(ctx context.Context) (*Process, error) {
	prog, number := t.prog, t.nextRun()
	var null *os.File
	var in *run
	err := making.do(func() (err error) {
		if null, err = os.OpenFile(os.DevNull, os.O_RDWR, 0); err == nil {
			in, err = t.leaf.newRun(number)
		}
		return err
	})
	defer null.Close()
	if err != nil {
		return nil, err
	}
	own := newPart(t.Tree, in, nil)
	own.path = in.path
	t.add(own) // a kill of the tree waits for this start's end
	prog.Gate = true
	l := &launch{prog: prog, exe: t.guard.cfg.Exe, args0: t.guard.cfg.Args0, files: [3]*os.File{null, t.spec.stdout(), t.spec.stderr()}}
	l.place = func(sys *syscall.SysProcAttr) { sys.UseCgroupFD, sys.CgroupFD = true, in.dir } // P3: nobody can fork into a removed cgroup
	err = t.guard.spawner.do(ctx, func() {
		if t.guard.beforeSpawn != nil {
			t.guard.beforeSpawn()
		}
		l.fork()
	})
	if err != nil {
		l.err = err // fork was not called
	}
	p := &Process{tree: t.Tree, part: own, done: make(chan struct{})}
	if l.process != nil {
		p.pid = l.process.Pid
		p.signal = func(sig syscall.Signal) error { return l.process.Signal(sig) }
		held := making.do(func() error { // before it may be reaped
			if err := own.hold(in, p.pid); err != nil {
				return err
			}
			return in.name(own.first)
		})
		t.guard.guardians.tasks.Go(func() { p.reap(l.process) })
		l.opens = func() error {
			if held != nil {
				return held
			}
			return t.enlist(ctx, own)
		}
	}
	why, err := l.hear(ctx)
	if why != nil {
		err = prog.fault(why)
	}
	if err == nil {
		own.runs(p)
		return p, nil
	}
	if errors.Is(err, errKilledEarly) {
		<-p.done
		err = t.whyEarly(p.status)
	}
	if in.removed() {
		err = fmt.Errorf("%w: %w", ErrLeaseEnded, err)
	}
	return nil, errors.Join(err, own.giveUp(ctx))
}

// hold makes a process the first one of the run.
func (p *part) hold(in *run, pid int) error {
	s, err := statOf(pid)
	if err != nil {
		return err
	}
	one, err := holdFirst(pid, s.start)
	if err == nil && one == nil {
		err = errKilledEarly
	}
	if err != nil {
		return err
	}
	p.tree.mu.Lock()
	defer p.tree.mu.Unlock()
	p.body, p.first = &began{in, one}, one
	return nil
}

// enlist returns when both guardians hold the first process of a part.
func (t *attempt) enlist(ctx context.Context, p *part) error {
	g := t.guard
	g.guardians.mu.Lock()
	t.mu.Lock()
	seq, err := t.join(p)
	t.mu.Unlock()
	g.guardians.unlock()
	if err != nil {
		return err
	}
	return g.guardians.answered(ctx, seq)
}
