package child

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"understudy/supervisor/child/box"
	"understudy/supervisor/child/inside"
	"understudy/supervisor/child/wire"
	"understudy/supervisor/guard"
)

// part is one start's share of a tree, which dies if only that start is killed: a cgroup inside the tree's, or a stub with all
// processes below it. Or it is a process of the tree that was found in another cgroup.
type part struct {
	tree *Tree
	box  box.Box
	stub *stub // nil in a cgroup

	killing chan struct{} // held by the one Kill that is under way

	first *box.First // only in a cgroup; guarded by Tree.mu, as are the next four; nil until it is forked
	proc  *Process   // nil while it starts
	users int        // how many goroutines use the box
	over  bool       // proved dead
	told  bool       // whether its being in another cgroup was logged
	path  string     // of its cgroup
	found bool       // not started, but found in another cgroup
}

func newPart(t *Tree, b box.Box, s *stub) *part {
	return &part{tree: t, box: b, stub: s, killing: make(chan struct{}, 1)}
}

// runs notes the process of the start.
func (p *part) runs(proc *Process) {
	p.tree.mu.Lock()
	defer p.tree.mu.Unlock()
	p.proc = proc
}

// Kill kills all processes that this start spawned, and nothing else of the tree. nil says that their death is proved, and
// their resources are freed. Every start needs this, or its tree's Kill, even if it has ended by itself.
func (p *Process) Kill(ctx context.Context) error {
	if err := p.part.kill(ctx); err != nil {
		return fmt.Errorf("kill process %d of tree %s: %w", p.pid, p.tree.id.Name, err)
	}
	return nil
}

func (p *part) kill(ctx context.Context) error {
	t := p.tree
	t.mu.Lock()
	if p.over {
		t.mu.Unlock()
		return nil
	}
	p.users++            // nobody closes the box meanwhile
	err := p.box.Order() // P2: even if another goroutine is killing, or the context has ended
	t.mu.Unlock()
	select {
	case p.killing <- struct{}{}:
		err = box.KillUntilDead(ctx, p.box, true)
		<-p.killing
	case <-ctx.Done():
		err = errors.Join(fmt.Errorf("%w: %w", box.ErrUnproved, context.Cause(ctx)), err)
	}
	defer t.guard.guardians.lock()()
	t.mu.Lock()
	defer t.mu.Unlock()
	p.users--
	switch {
	case p.over:
		p.letGo()
		return nil // P2: the tree's Kill has proved it
	case err == nil:
		p.shed()
	}
	return err
}

// giveUp ends a failed start. A process that cannot be ended at once stays with the tree.
func (p *part) giveUp(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if err := p.kill(ctx); err != nil && !errors.Is(err, box.ErrUnproved) {
		return err
	}
	return nil
}

// hold makes a process the first one of the run.
func (p *part) hold(in *box.RunCgroup, pid int) error {
	s, err := box.StatOf(pid)
	if err != nil {
		return err
	}
	one, err := box.HoldFirst(pid, s.Start)
	if err == nil && one == nil {
		err = inside.ErrKilledEarly
	}
	if err != nil {
		return err
	}
	p.tree.mu.Lock()
	defer p.tree.mu.Unlock()
	p.box, p.first = &box.Began{RunCgroup: in, First: one}, one
	return nil
}

// whyEarly says why a copy of this process ended before it was the program.
func (p *part) whyEarly(status ExitStatus) error {
	if status.Signal == syscall.SIGKILL {
		return p.killedAtGate()
	}
	return fmt.Errorf("%w: code %d", inside.ErrKilledEarly, status.Code)
}

// killedAtGate returns the reason: only a guardian that ends the lease, or this process, kills a stub.
func (p *part) killedAtGate() error {
	cause := p.tree.guard.Cause(p.tree.guarded.Lease().Number)
	if cause == nil {
		cause = ErrLeaseEnded // the guardian's message is on its way
	}
	return fmt.Errorf("%w: killed before the program ran", cause)
}

// shed removes it from the tree after its death is proved. The caller holds guardians.mu and Tree.mu.
func (p *part) shed() {
	t := p.tree
	t.parts = slices.DeleteFunc(t.parts, func(other *part) bool { return other == p })
	if ref := p.ref(); ref != nil {
		t.guarded.Shed(*ref)
	}
	p.over = true
	p.letGo()
}

// join tells both guardians about it: about its stub, or its first process, which might leave the cgroup. The caller holds guardians.mu.
func (p *part) join() (seq uint64, err error) {
	return p.tree.guarded.Join(wire.Now(), *p.ref(), p.deadSignal())
}

// enlist returns when both guardians hold its first process.
func (p *part) enlist(ctx context.Context) error {
	return p.tree.guard.guardians.ask(ctx, func() (uint64, error) {
		p.tree.mu.Lock()
		defer p.tree.mu.Unlock()
		return p.join()
	})
}

// deadSignal is the descriptor that a guardian needs to hold the part, besides its name.
func (p *part) deadSignal() any {
	if p.stub == nil || p.stub.DeadSignal == nil {
		return nil
	}
	return p.stub.DeadSignal
}

// ref names it to the guardians; nil: it has no process yet.
func (p *part) ref() *guard.Ref {
	switch {
	case p.stub != nil:
		return &guard.Ref{Kind: p.tree.id.Kind, Pid: p.stub.Pid, Start: p.stub.Start}
	case p.first != nil: // killed, and proved dead, by its pidfd, as an init is
		return &guard.Ref{Kind: box.KindPidNS, Pid: p.first.Pid, Start: p.first.Start}
	}
	return nil
}

// letGo closes the box of a part that is over once nobody looks at it. The caller holds Tree.mu.
func (p *part) letGo() {
	if p.users == 0 {
		p.box.Close()
	}
}

// alive holds the parts of a tree that may live.
type alive struct {
	cgroup *box.TreeCgroup // its cgroup, which contains the parts; nil: its containment is of another kind

	mu     sync.Mutex // guards the fields below
	closed bool       // proved dead, and its container removed
	parts  []*part    // alive, or not yet proved dead
	runs   int        // cgroup: the last number given to a run
}

// nextRun numbers the runs of a cgroup.
func (t *alive) nextRun() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.runs++
	return t.runs
}

func (t *alive) add(p *part) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.parts = append(t.parts, p)
}

// firsts lists the processes that are held of a tree with a cgroup.
func (t *alive) firsts() (all []*box.First) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, p := range t.parts {
		if p.first != nil {
			all = append(all, p.first)
		}
	}
	return all
}

// Process finds a program that was started in the tree. It may have ended, while other processes of that start live.
func (t *alive) Process(pid int) (*Process, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, p := range t.parts {
		if p.proc != nil && p.proc.pid == pid {
			return p.proc, true
		}
	}
	return nil, false
}

// target is the box of a part to kill.
type target struct {
	*part
	box box.Box
}

// targets lists all parts at one moment. Nobody closes them before looked.
func (t *alive) targets() (parts []target) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, p := range t.parts {
		p.users++
		parts = append(parts, target{p, p.box})
	}
	return parts
}

// looked ends the use of targets.
func (t *alive) looked(parts []target) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, p := range parts {
		p.users--
		if p.over {
			p.letGo()
		}
	}
}

// strike orders the death of everything in the tree, and does not wait for it.
func (t *alive) strike() {
	t.mu.Lock() // held so that no descriptor is closed meanwhile; an order to kill does not wait
	defer t.mu.Unlock()
	if t.closed {
		return
	}
	for _, p := range t.parts { // first the processes that we hold: all else may wait for the kernel's lock on cgroups
		if p.first != nil {
			_ = p.first.Order()
		}
	}
	if t.cgroup != nil {
		_ = t.cgroup.Order() // the goroutine that ends the tree strikes again, and looks
	}
	for _, p := range t.parts {
		_ = p.box.Order()
	}
}

// Owns reports whether a process, by its pid in our namespace, belongs to a start of the tree that is not proved dead. In a cgroup
// a dead process keeps its place until it is reaped.
func (t *alive) Owns(pid int) bool {
	stubs := make(map[int]bool)
	var runs []string
	t.mu.Lock()
	for _, p := range t.parts {
		switch {
		case p.stub != nil:
			stubs[p.stub.Pid] = true
		case p.path != "":
			runs = append(runs, p.path)
		}
	}
	t.mu.Unlock()
	if t.cgroup != nil {
		raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cgroup")
		return err == nil && box.InRun(string(raw), runs)
	}
	for range 4096 { // bounds a chain of parents that changes meanwhile
		s, err := box.StatOf(pid)
		if err != nil || s.Ppid <= 1 {
			return false
		}
		if stubs[s.Ppid] {
			return true
		}
		pid = s.Ppid
	}
	return false
}
