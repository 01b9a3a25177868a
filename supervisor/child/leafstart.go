package child

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
)

// startInLeaf starts a program in a cgroup of its own, inside the tree's.
func (t *Tree) startInLeaf(ctx context.Context, spec Spec, prog *program) (*Process, error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	t.mu.Lock()
	t.runs++
	number := t.runs
	t.mu.Unlock()
	in, err := t.leaf.newRun(number)
	if err != nil {
		return nil, err
	}
	own := newPart(t, in, nil)
	t.mu.Lock() // whoever kills the tree waits for this start's end
	t.parts = append(t.parts, own)
	t.mu.Unlock()
	l := &launch{prog: prog, exe: t.guard.cfg.Exe, args0: t.guard.cfg.Args0, files: [3]*os.File{null, spec.stdout(), spec.stderr()}}
	l.place = func(sys *syscall.SysProcAttr) { sys.UseCgroupFD, sys.CgroupFD = true, in.dir } // P3: a removed cgroup cannot be forked into
	err = t.guard.onSpawner(ctx, func() {
		if t.guard.beforeSpawn != nil {
			t.guard.beforeSpawn()
		}
		l.fork()
	})
	if err != nil {
		l.err = err // fork was not called
	}
	p := &Process{tree: t, part: own, done: make(chan struct{})}
	if l.process != nil {
		p.pid = l.process.Pid
		p.signal = func(sig syscall.Signal) error { return l.process.Signal(sig) }
		t.guard.tasks.Go(func() { p.reap(l.process) })
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
