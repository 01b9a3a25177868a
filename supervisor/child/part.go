package child

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"time"

	"understudy/supervisor/child/box"
	"understudy/supervisor/child/wire"
	"understudy/supervisor/guard"
)

// part is one start's share of a tree, which dies if only that start is killed: a cgroup inside the leaf, or a stub with all
// processes below it.
type part struct {
	tree *Tree
	body box.Body
	stub *stub // nil in a cgroup

	killing chan struct{} // held by the one Kill that is under way

	first *box.First // only in a cgroup; guarded by Tree.mu, as are the next four; nil until it is forked
	proc  *Process   // nil while it starts
	users int        // how many goroutines use the body
	over  bool       // proved dead
	told  bool       // whether its leaving its cgroup was logged
	path  string     // of its cgroup
}

func newPart(t *Tree, b box.Body, s *stub) *part {
	return &part{tree: t, body: b, stub: s, killing: make(chan struct{}, 1)}
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
	p.users++             // nobody closes the body meanwhile
	err := p.body.Order() // P2: even if another goroutine is killing, or the context has ended
	t.mu.Unlock()
	select {
	case p.killing <- struct{}{}:
		err = box.KillUntilDead(ctx, p.body, true)
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
		t.shed(p)
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

// shed removes a part from the tree after its death is proved. The caller holds guardians.mu and mu.
func (t *Tree) shed(p *part) {
	t.parts = slices.DeleteFunc(t.parts, func(other *part) bool { return other == p })
	if ref := t.refTo(p); ref != nil {
		t.entry.Shed(*ref)
	}
	p.over = true
	p.letGo()
}

// join tells both guardians about a part: about its stub, or its first process, which might leave the cgroup. The caller holds
// guardians.mu.
func (t *Tree) join(p *part) (seq uint64, err error) {
	return t.entry.Join(wire.Now(), *t.refTo(p), p.witness())
}

// witness is the descriptor that a guardian needs to hold the part, besides its name.
func (p *part) witness() any {
	if p.stub == nil || p.stub.witness == nil {
		return nil
	}
	return p.stub.witness
}

// refTo names a part to the guardians; nil: it has no process yet.
func (t *Tree) refTo(p *part) *guard.Ref {
	switch {
	case p.stub != nil:
		return &guard.Ref{Kind: t.id.Kind, Pid: p.stub.pid, Start: p.stub.start}
	case p.first != nil: // killed, and proved dead, by its pidfd, as an init is
		return &guard.Ref{Kind: box.KindPidNS, Pid: p.first.Pid, Start: p.first.Start}
	}
	return nil
}

// letGo closes the body of a part that is over once nobody looks at it. The caller holds Tree.mu.
func (p *part) letGo() {
	if p.users == 0 {
		p.body.Close()
	}
}

// Owns reports whether a process, by its pid in our namespace, belongs to a start of the tree that is not proved dead. In a cgroup
// a dead process keeps its place until it is reaped.
func (t *Tree) Owns(pid int) bool {
	stubs := make(map[int]bool)
	var runs []string
	t.mu.Lock()
	for _, p := range t.parts {
		if p.stub != nil {
			stubs[p.stub.pid] = true
		} else {
			runs = append(runs, p.path)
		}
	}
	t.mu.Unlock()
	if t.leaf != nil {
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

// Astray returns the other cgroup to which the program has moved itself: it is killed there, but processes that it has forked there
// are not. "": it is in the cgroup of its start, or has ended. Astray may hang with the kernel's lock on cgroups.
func (p *Process) Astray() (cgroup string) {
	t, in := p.tree, p.part
	t.mu.Lock()
	one := in.first
	t.mu.Unlock()
	if one == nil {
		return ""
	}
	var text []byte
	err := box.Making.Do(func() (err error) {
		text, err = os.ReadFile("/proc/" + strconv.Itoa(one.Pid) + "/cgroup")
		return err
	})
	if err != nil || box.InRun(string(text), []string{in.path}) {
		return ""
	}
	if gone, err := one.Dead(); gone || err != nil { // check it after reading what may belong to another process
		return ""
	}
	at := box.CgroupOf(string(text))
	t.mu.Lock()
	told := in.told
	in.told = true
	t.mu.Unlock()
	if !told {
		t.guard.cfg.Logger.Warn("a program has moved itself to another cgroup: it is killed there, but processes that it forks there are not",
			"tree", t.id.Name, "pid", one.Pid, "cgroup", at)
	}
	return at
}
