package child

import (
	"sync"

	"understudy/supervisor/child/box"
)

// alive holds the parts of a tree that may live.
type alive struct {
	leaf *box.Leaf // its cgroup, which contains the parts; nil: its containment is of another kind

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

// firsts lists the first processes of the parts in a cgroup.
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

// target is the body of a part to kill.
type target struct {
	*part
	body box.Body
}

// targets lists all parts at one moment. Nobody closes them before looked.
func (t *alive) targets() (parts []target) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, p := range t.parts {
		p.users++
		parts = append(parts, target{p, p.body})
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
	if t.leaf != nil {
		_ = t.leaf.Order() // the goroutine that ends the tree strikes again, and looks
	}
	for _, p := range t.parts {
		_ = p.body.Order()
	}
}
