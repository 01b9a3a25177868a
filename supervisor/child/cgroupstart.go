package child

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"

	"understudy/supervisor/child/box"
	"understudy/supervisor/child/inside"
)

// inCgroup starts a program in a cgroup of its own, inside the tree's. A copy of this process becomes it, once both guardians hold
// the copy: a removed cgroup refuses a late fork, but does not hold processes that leave it.
func (t *attempt) inCgroup(ctx context.Context) (*Process, error) {
	var files [3]*os.File
	closeIn := func() {}
	err := box.Making.Do(func() (err error) {
		files, closeIn, err = t.spec.files()
		return err
	})
	defer closeIn()
	if err != nil {
		return nil, err
	}
	w, err := t.wait(ctx)
	if err != nil {
		return nil, err
	}
	if t.spec.Bounds != (box.Bounds{}) {
		err := box.Making.Do(func() error { return t.cgroup.Bound(w.in, t.guard.cfg.Container.Base, t.spec.Bounds) })
		if err != nil {
			w.Free()
			return nil, w.failed(ctx, fmt.Errorf("limits: %w", err))
		}
	}
	why, err := w.Become(ctx, t.prog, files)
	if why != nil {
		err = t.prog.Fault(why)
	}
	if err == nil {
		w.own.runs(w.p)
		return w.p, nil
	}
	return nil, w.failed(ctx, err)
}

// waiting is a copy of this process that waits at its gate, in a cgroup of its own. Both guardians hold it.
type waiting struct {
	*inside.Launch
	own *part
	in  *box.RunCgroup
	p   *Process
}

// wait makes one.
func (t *Tree) wait(ctx context.Context) (*waiting, error) {
	number := t.nextRun()
	w := &waiting{}
	err := box.Making.Do(func() (err error) {
		w.in, err = t.cgroup.NewRun(number)
		return err
	})
	if err != nil {
		return nil, err
	}
	w.own = newPart(t, w.in, nil)
	w.own.path = w.in.Path
	t.add(w.own) // a kill of the tree waits for this start's end
	var forked error
	err = t.guard.spawner.do(ctx, func() {
		if t.guard.beforeSpawn != nil {
			t.guard.beforeSpawn()
		}
		w.Launch, forked = inside.Fork(w.in.Dir)
	})
	err = errors.Join(err, forked)
	if err != nil {
		return nil, w.failed(ctx, err)
	}
	process := w.Process
	w.p = &Process{tree: t, part: w.own, pid: process.Pid, done: make(chan struct{}),
		signal: func(sig syscall.Signal) error { return process.Signal(sig) }}
	err = box.Making.Do(func() error { // before it may be reaped
		if err := w.own.hold(w.in, w.p.pid); err != nil {
			return err
		}
		return w.in.Name(w.own.first)
	})
	t.guard.guardians.tasks.Go(func() { w.p.reap(process) })
	if err == nil {
		err = w.own.enlist(ctx)
	}
	if err == nil {
		return w, nil
	}
	w.Free()
	return nil, w.failed(ctx, err)
}

// failed ends a start that failed.
func (w *waiting) failed(ctx context.Context, err error) error {
	if errors.Is(err, inside.ErrKilledEarly) {
		<-w.p.done
		err = w.own.whyEarly(w.p.status)
	}
	if w.in.Removed() {
		err = fmt.Errorf("%w: %w", ErrLeaseEnded, err)
	}
	return errors.Join(err, w.own.giveUp(ctx))
}
