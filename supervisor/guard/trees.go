package guard

import (
	"slices"
	"time"
)

// AddTree adds a new tree. The caller may use it once both guardians know it.
func (s *State) AddTree(now time.Duration, number uint64, spec TreeSpec) (t *Tree, seq uint64, err error) {
	l, err := s.live(now, number)
	if err != nil {
		return nil, 0, err
	}
	s.trees++
	t = &Tree{Number: s.trees, Spec: spec, lease: l, turn: make(chan struct{}, 1)}
	l.trees = append(l.trees, t)
	return t, s.to.ask(now, t.registration()), nil
}

// Lease is the lease that the tree lives under.
func (t *Tree) Lease() *Lease { return t.lease }

func (t *Tree) registration() *Message {
	m := &Message{Op: OpTree, Epoch: t.lease.Number, Tree: t.Number, Release: t.Spec.Release, Name: t.Spec.Name, Along: t.Spec.Along}
	if t.Spec.Ref != nil && !t.dead {
		m.Box = t.Spec.Ref()
	}
	return m
}

func (t *Tree) message(op Op, m HeldProcess) *Message {
	return &Message{Op: op, Epoch: t.lease.Number, Tree: t.Number, Box: &m.Ref, Along: m.Along}
}

func (t *Tree) arming() *Message {
	return &Message{Op: OpArm, Epoch: t.lease.Number, Tree: t.Number, Grace: t.after}
}

// MayStart is the last check of the lease before a fork. Started has to follow. Time may pass between the check and the fork: a guardian
// that ends the lease removes the container, and then the fork fails.
func (t *Tree) MayStart(now time.Duration) error {
	if err := t.lease.leased(now); err != nil {
		return err
	}
	if t.killing || t.ended {
		return ErrTreeEnded
	}
	t.starting++
	return nil
}

// Started notes that a start is over, whether it succeeded or not: a look at the tree shows its result.
func (t *Tree) Started() {
	t.starting--
	t.lease.state.to.news()
}

// Join adds a process that was started in a tree. P3: it must not run a program before both guardians hold it.
func (t *Tree) Join(now time.Duration, ref Ref, along any) (seq uint64, err error) {
	if err := t.lease.alive(now); err != nil {
		return 0, err
	}
	if t.killing || t.ended {
		return 0, ErrTreeEnded
	}
	m := HeldProcess{ref, along}
	t.members = append(t.members, m)
	return t.lease.state.to.ask(now, t.message(OpJoin, m)), nil
}

// Found adds a process that lives outside of the tree's container, also while the tree is being killed. The guardians hold it soon. It
// reports false if the tree's death is proved already.
func (t *Tree) Found(ref Ref) bool {
	if t.dead {
		return false
	}
	m := HeldProcess{Ref: ref}
	t.found++
	t.members = append(t.members, m)
	if t.lease.Cause == nil { // else they are killing what they hold, and take nothing in
		t.lease.state.to.broadcast(t.message(OpJoin, m))
	}
	return true
}

// Shed notes a proved death in a tree.
func (t *Tree) Shed(ref Ref) {
	t.members = slices.DeleteFunc(t.members, func(m HeldProcess) bool { return m.Ref == ref })
	if !t.dead {
		t.lease.state.to.broadcast(t.message(OpShed, HeldProcess{Ref: ref}))
	}
}

// beginKill lets no process be started in a tree until endKill, and with end never again. over: its end is proved already.
func (t *Tree) beginKill(end bool) (over bool) {
	if t.dead {
		return true
	}
	t.killing, t.ended = true, t.ended || end
	return false
}

func (t *Tree) endKill() { t.killing = false }

// markDead tells the guardians that a tree is dead, and its container gone.
func (t *Tree) markDead() {
	t.dead = true
	if t.effects == nil {
		t.leave()
	}
	t.lease.state.to.broadcast(t.dropping())
}

func (t *Tree) dropping() *Message {
	return &Message{Op: OpDrop, Epoch: t.lease.Number, Tree: t.Number}
}

// leave drops a settled tree.
func (t *Tree) leave() {
	t.lease.trees = slices.DeleteFunc(t.lease.trees, func(other *Tree) bool { return other == t })
}

// Arm makes the watchdog reset the machine unless the tree is proved dead so long after its lease's end. Guardians do not feed the device
// for a tree without a lease.
func (t *Tree) Arm(now, after time.Duration) (seq uint64, err error) {
	if err := t.lease.leased(now); err != nil {
		return 0, err
	}
	if t.dead {
		return 0, ErrTreeEnded
	}
	t.armed, t.after = true, after // also on a failure: one guardian may know it
	return t.lease.state.to.ask(now, t.arming()), nil
}

// Armed reports whether the watchdog guards the tree, and how long after its lease's end the death must be proved.
func (t *Tree) Armed() (is bool, after time.Duration) { return t.armed, t.after }
