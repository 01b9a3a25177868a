package child

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"

	"understudy/supervisor/child/box"
	"understudy/supervisor/child/inside"
	"understudy/supervisor/child/wire"
	"understudy/supervisor/wait"
)

// Spec is a program to start. It leads a session of its own. For nil fields it inherits the supervisor's values; the limits are those that
// the supervisor was started with.
type Spec struct {
	Argv           []string
	Dir            string   // entered as the program's user
	Env            []string // complete; the last of a name counts
	Stdin          *os.File // default: /dev/null
	Stdout, Stderr *os.File // default: this process's own
	Aside          bool     // Output reads stderr alone
	Bounds         box.Bounds
	inside.Settings
}

// ExitStatus is a program's exit code, or the signal that ended it.
type ExitStatus struct {
	Code   int // 128+N when signal N ended it
	Signal syscall.Signal
	Core   bool
	// OutOfMemory: the kernel has killed processes of the program because memory was short.
	OutOfMemory bool `json:",omitempty"`
	// Unknown: it ended, but nobody saw how, as when the stub above it was killed.
	Unknown bool
}

// Process is a started program with all that it forks: one of those in its tree.
type Process struct {
	tree      *Tree
	part      *part
	pid       int
	done      chan struct{}
	status    ExitStatus // written before done is closed
	signal    func(syscall.Signal) error
	leftovers askedLeftovers
}

// Pid is the process id in this process's PID namespace.
func (p *Process) Pid() int { return p.pid }

// Done is closed when the program has ended; processes that it forked may still run.
func (p *Process) Done() <-chan struct{} { return p.done }

// Wait waits for the program's end. Its error is only ever the context's.
func (p *Process) Wait(ctx context.Context) (ExitStatus, error) {
	select {
	case <-p.done:
		return p.status, nil
	default:
	}
	select {
	case <-p.done:
		return p.status, nil
	case <-ctx.Done():
		return ExitStatus{}, context.Cause(ctx)
	}
}

// Signal sends a signal to the program itself. os.ErrProcessDone: it has ended.
func (p *Process) Signal(sig syscall.Signal) error {
	select {
	case <-p.done:
		return os.ErrProcessDone
	default:
		return p.signal(sig)
	}
}

// Start starts a program in the tree, which may have others running. ErrLeaseEnded or ErrNoLease: it must not run now.
// inside.ErrNotFound, ErrNotExecutable, ErrSettings: it cannot.
func (t *Tree) Start(ctx context.Context, spec Spec) (*Process, error) {
	prog, err := wait.Reached(ctx, &t.guard.reach, spec.resolve, nil)
	if errors.Is(err, wait.ErrNoAnswer) {
		return nil, fmt.Errorf("look for %v and its directory: %w", spec.Argv, err)
	} else if err != nil {
		return nil, err
	}
	one := &attempt{t, spec, prog}
	started, err := t.mayStart()
	if err != nil {
		return nil, err
	}
	defer started()
	if t.cgroup != nil {
		return one.inCgroup(ctx)
	}
	return one.inStub(ctx)
}

// attempt is one attempt to start a program in a tree.
type attempt struct {
	*Tree
	spec Spec
	prog *inside.Program
}

// mayStart begins a start, if a program may run now. Its result ends it.
func (t *Tree) mayStart() (started func(), err error) {
	defer t.guard.guardians.lock()()
	if err := t.guarded.MayStart(wire.Now()); err != nil {
		return nil, err
	}
	return func() {
		defer t.guard.guardians.lock()()
		t.guarded.Started()
	}, nil
}

func statusOf(ws syscall.WaitStatus) ExitStatus {
	status := ExitStatus{Code: inside.ExitCode(ws)}
	if ws.Signaled() {
		status.Signal, status.Core = ws.Signal(), ws.CoreDump()
	}
	return status
}
