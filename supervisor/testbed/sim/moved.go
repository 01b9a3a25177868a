package sim

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"understudy/supervisor/child"
	"understudy/supervisor/child/box"
	"understudy/supervisor/guard"
)

// In one of so many seeds another tool of a host moves processes of services into cgroups of its own, as cgrulesengd does. What a supervisor
// has seen in its cgroup it follows. Until it has found it there, its guardians do not know it, nor does a later supervisor: then it ends
// with what they know, since nothing is promised of it.
const (
	movedIn   = 17
	movedFrom = 14
)

// moves adds that to the episodes that are drawn. It has a stream of its own: the others are what they were.
func (p *Plan) moves() {
	if p.Seed%movedIn != movedFrom || p.Calm || p.Replicated {
		return
	}
	r := rand.New(rand.NewPCG(p.Seed, 47))
	for i := range p.Episodes {
		e := &p.Episodes[i]
		for range r.IntN(4) {
			f := p.fault(r, MoveProcess)
			f.At, f.Active, f.For = drawn(r, e.Length), r.IntN(4) > 0, 0
			with := p.fault(r, pick(r, KillChild, KillChild, BadProgram, StopSupervisor, ChangeConfig, GiveOrder, CrashSupervisor, CutLink))
			with.Node, with.Active, with.At = f.Node, f.Active, f.At+drawn(r, p.Timeout)
			e.Length = max(e.Length, with.At+with.For)
			e.Faults = append(e.Faults, f, with)
		}
		sortFaults(e.Faults)
	}
}

// moveProcesses moves some of the processes that run for a service of a node. World.mu is held.
func (hf *hostFaults) moveProcesses(f Fault, n *node) (end func(), done bool) {
	for _, t := range n.inc.trees() {
		if t.service != hf.nemesis.serviceOf(f) || t.removed {
			continue
		}
		for k, p := range t.all() {
			if p.killed || p.moved || p.parent != nil && !t.seen[p] || f.N>>(k%16)&1 == 0 {
				continue
			}
			p.moved = true
			done = done || p.parent != nil
			hf.say("%v: %v", f, p)
			inc := n.inc
			hf.after(unfoundFor, func() { hf.check.orphans.unfound(p, inc) })
		}
		t.news()
	}
	return nil, done
}

// outside reports whether the order to kill the container does not reach a process.
func (p *proc) outside() bool { return p.nature.strays || p.moved }

// hidden reports whether nobody holds a process.
func (p *proc) hidden() bool { return p.moved && p.parent != nil && !p.found }

// look is one look for processes in other cgroups. World.mu is held.
func (t *handle) look() (all []child.Stray) {
	t.held = slices.DeleteFunc(t.held, func(p *proc) bool {
		if p.dead {
			t.guarded.Shed(p.ref())
		}
		return p.dead
	})
	before := t.seen
	t.seen = map[*proc]bool{}
	for _, p := range t.all() {
		switch {
		case !p.outside():
			t.seen[p] = true
			continue
		case p.hidden() && (before[p] || !p.parent.dead):
			t.follow(p)
		case p.hidden():
			continue
		}
		all = append(all, child.Stray{Pid: p.pid, Comm: "program", Cgroup: "/elsewhere"})
	}
	return all
}

// follow holds a process from now on, wherever it is.
func (t *handle) follow(p *proc) {
	p.found, t.held = true, append(t.held, p)
	p.tree.host.w.say("%s: supervisor %d finds %v in another cgroup", t.node, t.guard.inc.number, p)
	if !t.guarded.Found(p.ref()) {
		p.kill()
	}
}

func (p *proc) ref() guard.Ref {
	return guard.Ref{Kind: box.KindCgroup, Path: p.tree.id.Name, Pid: p.pid}
}

// Search implements guard.KillHands.
func (t killHands) Search(context.Context) (again bool, err error) {
	t.Change(func() {
		for _, p := range t.all() {
			again = again || t.seen[p]
		}
		if again {
			t.look()
		}
	})
	return again, nil
}

// unfoundFor is how long it may take until a look finds a process.
const unfoundFor = time.Minute + 5*time.Second

// unfound looks, a while after a process was moved, whether it has been found.
func (ov orphansView) unfound(p *proc, looked *incarnation) {
	inc := p.tree.of.inc
	if p.dead || !p.hidden() || !inc.alive() || inc.hung {
		return
	}
	if left := unfoundFor - time.Since(inc.awake); left > 0 || inc != looked || !inc.running() {
		ov.w.after(max(left, unfoundFor/4), func() { ov.unfound(p, inc) })
		return
	}
	ov.broken("P2", "%v is in another cgroup, and has not been found for %v", p, unfoundFor)
}

// openFound holds what a supervisor has found in another cgroup; nil: it is no more.
func (h *hands) openFound(ref *guard.Ref) (guard.Box, error) {
	if t := h.host.trees[ref.Path]; t != nil {
		for _, p := range t.all() {
			if p.pid == ref.Pid {
				return heldProc{p}, nil
			}
		}
	}
	return nil, nil
}

// heldProc is a process that was found in another cgroup, as a guardian holds it.
type heldProc struct{ *proc }

// Order implements guard.Box.
func (p heldProc) Order() { p.kill() }

// Look implements guard.Box.
func (p heldProc) Look(bool) guard.Look {
	p.kill()
	return guard.Look{Dead: p.dead, Again: strikeAgain}
}

// Waits implements guard.Box.
func (heldProc) Waits() bool { return false }

// Close implements guard.Box.
func (heldProc) Close() {}

// of is a tree of which a guardian holds something.
func (p heldProc) of() *tree { return p.tree }
func (p heldTree) of() *tree { return p.tree }
