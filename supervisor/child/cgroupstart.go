package child

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
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
	w := t.expected.pop()
	if w == nil {
		w, err = t.wait(ctx)
		if err != nil {
			return nil, err
		}
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

// expected is the copy that is made for a program that will probably be started soon.
type expected struct {
	making sync.Mutex // held while it is made
	next   *waiting   // guarded by making
}

// pop returns the copy that waits, if there is one that lives.
func (e *expected) pop() *waiting {
	e.making.Lock()
	defer e.making.Unlock()
	w := e.next
	e.next = nil
	if w == nil {
		return nil
	}
	select {
	case <-w.p.done: // a kill of the tree has ended it
		w.Free()
		return nil
	default:
		return w
	}
}

var expecting = make(chan struct{}, 4) // of all trees: nobody's start waits for many that may be of no use

// Expect has a copy of this process wait for the next start, so that this one takes no time. It returns at once. Expect nothing while
// nothing is about to be started: the copy is a process that guardians watch.
func (t *Tree) Expect(ctx context.Context) {
	if t.cgroup == nil {
		return
	}
	alone := t.expected.making.TryLock()
	if !alone {
		return
	}
	select {
	case expecting <- struct{}{}:
	default:
		t.expected.making.Unlock()
		return
	}
	t.guard.guardians.tasks.Go(func() {
		defer t.expected.making.Unlock()
		defer func() { <-expecting }()
		if t.expected.next != nil {
			return
		}
		started, err := t.mayStart()
		if err != nil {
			return
		}
		defer started()
		w, err := t.wait(ctx)
		if err != nil { // the start itself tells why
			t.guard.cfg.Logger.Debug("no process is prepared for the program", "tree", t.id.Name, "error", err)
		}
		t.expected.next = w
	})
}

// Relax ends what Expect has begun, unless a start has taken it.
func (t *Tree) Relax(ctx context.Context) error {
	w := t.expected.pop()
	if w == nil {
		return nil
	}
	w.Free()
	return w.own.giveUp(ctx)
}
