package sim

import (
	"math/rand/v2"
	"time"
)

// In one of so many seeds another tool of a host freezes the cgroups of programs for a while, as a container runtime does, or removes those
// that are empty, as systemd does with what is not delegated.
const (
	otherToolIn   = 17
	otherToolFrom = 7
)

// otherTools adds that to the episodes that are drawn. It has a stream of its own: the others are what they were.
func (p *Plan) otherTools() {
	if p.Seed%otherToolIn != otherToolFrom || p.Calm || p.Replicated { // a copy that is frozen would acknowledge what it cannot have
		return
	}
	r := rand.New(rand.NewPCG(p.Seed, 41))
	for i := range p.Episodes {
		e := &p.Episodes[i]
		for range r.IntN(4) {
			f := p.fault(r, pick(r, FreezeTree, FreezeTree, RemoveTree))
			f.At, f.Active = drawn(r, e.Length), r.IntN(4) > 0
			if f.For = drawn(r, 2*p.Timeout); f.Kind == FreezeTree && r.IntN(2) == 0 { // for longer than a program may take to stop, or to be killed
				f.For = p.Timeout + drawn(r, 4*p.Timeout+30*time.Second)
			}
			e.Length = max(e.Length, f.At+f.For)
			e.Faults = append(e.Faults, f)
		}
		sortFaults(e.Faults)
	}
}

// freezeTree freezes all that runs for one service of a node. It can be killed, and does nothing else. World.mu is held, as it is when that
// ends.
func (hf *hostFaults) freezeTree(f Fault, n *node) (end func(), done bool) {
	var all []*tree
	for _, t := range n.inc.trees() {
		if t.service == hf.nemesis.serviceOf(f) && !t.removed && !t.frozen {
			all = append(all, t.tree)
		}
	}
	if len(all) == 0 {
		return nil, false
	}
	hf.say("%v", f)
	for _, t := range all {
		t.frozen = true
	}
	return func() {
		hf.say("over: %v", f)
		for _, t := range all {
			t.thaw()
		}
	}, true
}

// thaw has a tree's processes do what they would have done.
func (t *tree) thaw() {
	late := t.late
	t.frozen, t.late = false, nil
	for _, f := range late {
		f()
	}
}

// runs has a process do something by itself, as soon as it can.
func (t *tree) runs(f func()) {
	if t.frozen {
		t.late = append(t.late, f)
		return
	}
	f()
}

// born waits, in a start, until the tree is not frozen, or is killed.
func (t *tree) born(alive func() bool, waits func() bool) bool {
	w := t.host.w
	for alive() {
		w.mu.Lock()
		frozen := t.frozen && !t.removed
		w.mu.Unlock()
		if !frozen || !waits() {
			return !frozen
		}
	}
	return true // who started it is no more
}

// trees is what a supervisor has, in their order. World.mu is held.
func (i *incarnation) trees() []*handle {
	if i.guard == nil {
		return nil
	}
	return i.guard.trees()
}

// removeTrees removes a node's empty cgroups, after it has killed what is in them. World.mu is held.
func (hf *hostFaults) removeTrees(f Fault, n *node) (end func(), done bool) {
	hf.killChildren(n.host)
	hf.after(time.Duration(f.N%100)*time.Millisecond, func() {
		if n.inc == nil {
			return
		}
		for _, t := range n.inc.trees() {
			if len(t.procs) > 0 || t.removed {
				continue
			}
			hf.say("%v: %s", f, t.id.Name)
			hf.nemesis.noteFault(f.Kind)
			t.removed = true
			t.news()
		}
	})
	return nil, true
}
