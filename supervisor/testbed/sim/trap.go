package sim

import (
	"encoding/binary"
	"errors"
	"time"

	"understudy/election/jute"
)

var errNoStonith = errors.New("the power switch does not answer")

// moment is a place in a supervisor's doing where a fault is most telling.
type moment int

const (
	beforeFork  moment = iota // between the last look at the lease and the fork
	afterFork                 // the child lives, and nobody knows
	beforeKill                // a tree is about to be killed
	afterKill                 // its death is proved, and nobody knows
	beforeWrite               // a transaction is about to be sent
	afterWrite                // it is sent, and the answer not read
	moments
)

var momentNames = [...]string{
	"before it forks the child", "after it forked the child", "before it kills a tree", "after it killed a tree", "before it sends a transaction",
	"after it sent a transaction",
}

// trap freezes, kills or cuts off a supervisor at a moment.
type trap struct {
	kind   Kind
	at     moment
	freeze time.Duration // 0: it is killed
	then   func()        // unless nil: is called, a moment later
	cut    *Fault        // unless nil: of its links, and nothing else happens to it
	again  time.Duration // after that a killed one is started again
}

// waylay does to a supervisor that begins to fence, or to stop a child, what waits for that.
func (i *incarnation) waylay(service string, stopping bool) {
	w := i.node.w
	w.mu.Lock()
	defer w.mu.Unlock()
	if i.node.inc != i {
		return
	}
	f, ok := w.nemesis.hosts.sprung(service, stopping)
	if !ok {
		return
	}
	if f.Kind == LateInscription {
		i.node.arm(&trap{kind: f.Kind, at: beforeWrite, freeze: f.For, then: func() { w.overtake(service) }})
		return
	}
	after := f.For
	if w.plan.Replicated { // a copy is promoted in milliseconds
		after /= 200
	}
	time.AfterFunc(after, func() {
		if f.Kind == DeleteInFencing || f.Kind == DeleteInStopping {
			if w.operator.deleteLock(service) {
				w.nemesis.count(f.Kind)
			}
			return
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		if i.node.inc == i && !w.course.over {
			w.say("%s: supervisor %d is asked to stop", i.node.name, i.number)
			w.nemesis.noteFault(f.Kind)
			i.asked = true
			go i.stop()
			w.after(2*f.For, i.node.comeBack)
		}
	})
}

// arm sets a trap. World.mu is held.
func (n *node) arm(t *trap) {
	n.traps = append(n.traps, t)
	n.armed.Add(1)
}

// overtake takes the lock from a supervisor that is frozen, and sees to it that whoever has it next gives it back soon: then the
// breadcrumb of the one after that looks, by its version, like the one that the frozen supervisor has read.
func (w *world) overtake(service string) {
	if !w.operator.deleteLock(service) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.after(w.plan.Timeout/5, func() {
		for _, n := range w.nodes {
			if n.inc != nil && n.inc.running() && w.check.runsOn(service, n.name) {
				w.say("%s: supervisor %d is asked to stop", n.name, n.inc.number)
				n.inc.asked = true
				go n.inc.stop()
				w.after(w.plan.Timeout, n.comeBack)
			}
		}
	})
}

// trap springs what waits for this moment.
func (i *incarnation) trap(at moment, frame []byte) {
	n := i.node
	if n.armed.Load() == 0 {
		return
	}
	if at >= beforeWrite && (len(frame) < 12 || jute.Op(binary.BigEndian.Uint32(frame[8:])) != jute.OpMulti) {
		return
	}
	n.w.mu.Lock()
	defer n.w.mu.Unlock()
	if n.inc != i || !i.running() || !i.mayLose(1) {
		return
	}
	for k, t := range n.traps {
		if t.at != at {
			continue
		}
		n.traps = append(n.traps[:k:k], n.traps[k+1:]...)
		n.armed.Add(-1)
		n.w.say("%s: trap %s", n.name, momentNames[at])
		n.w.nemesis.noteFault(t.kind)
		if t.cut != nil {
			n.w.nemesis.links.cutFor(*t.cut)
			return
		}
		if t.then != nil {
			time.AfterFunc(time.Millisecond, t.then)
		}
		if t.freeze > 0 {
			i.halt(t.freeze)
			return
		}
		n.w.say("%s: supervisor %d is killed", n.name, i.number)
		n.crash(true)
		n.w.after(t.again, n.start)
		return
	}
}
