package guard

import (
	"slices"
	"time"
)

// Plant adds a new tree. The caller may use it once both guardians know it.
func (l *Ledger) Plant(now time.Duration, number uint64, plant Plant) (t *Entry, seq uint64, err error) {
	e, err := l.live(now, number)
	if err != nil {
		return nil, 0, err
	}
	l.trees++
	t = &Entry{Number: l.trees, Plant: plant, epoch: e, turn: make(chan struct{}, 1)}
	e.trees = append(e.trees, t)
	return t, l.to.ask(now, t.registration()), nil
}

// Epoch is the lease that the tree lives under.
func (t *Entry) Epoch() *Epoch { return t.epoch }

func (t *Entry) registration() *Message {
	m := &Message{Op: OpTree, Epoch: t.epoch.Number, Tree: t.Number, Release: t.Plant.Release, Mark: t.Plant.Mark, Name: t.Plant.Name, Along: t.Plant.Along}
	if t.Plant.Ref != nil && !t.dead {
		m.Body = t.Plant.Ref()
	}
	return m
}

func (t *Entry) message(op Op, m Member) *Message {
	return &Message{Op: op, Epoch: t.epoch.Number, Tree: t.Number, Body: &m.Ref, Along: m.Along}
}

func (t *Entry) arming() *Message {
	return &Message{Op: OpArm, Epoch: t.epoch.Number, Tree: t.Number, Grace: t.after}
}

// MayStart is the last check of the lease before a fork. Started has to follow. Time may pass between the check and the fork: a guardian
// that ends the lease removes the container, and then the fork fails.
func (t *Entry) MayStart(now time.Duration) error {
	if err := t.epoch.leased(now); err != nil {
		return err
	}
	if t.killing || t.ended {
		return ErrTreeEnded
	}
	t.starting++
	return nil
}

// Started notes that a start is over, whether it succeeded or not: a look at the tree shows its result.
func (t *Entry) Started() {
	t.starting--
	t.epoch.ledger.to.news()
}

// Join adds a process that was started in a tree. P3: it must not run a program before both guardians hold it.
func (t *Entry) Join(now time.Duration, ref Ref, along any) (seq uint64, err error) {
	if err := t.epoch.alive(now); err != nil {
		return 0, err
	}
	if t.killing || t.ended {
		return 0, ErrTreeEnded
	}
	m := Member{ref, along}
	t.members = append(t.members, m)
	return t.epoch.ledger.to.ask(now, t.message(OpBody, m)), nil
}

// Shed notes a proved death in a tree.
func (t *Entry) Shed(ref Ref) {
	t.members = slices.DeleteFunc(t.members, func(m Member) bool { return m.Ref == ref })
	if !t.dead {
		t.epoch.ledger.to.broadcast(t.message(OpShed, Member{Ref: ref}))
	}
}

// beginKill lets no process be started in a tree until endKill, and with end never again. over: its end is proved already.
func (t *Entry) beginKill(end bool) (over bool) {
	if t.dead {
		return true
	}
	t.killing, t.ended = true, t.ended || end
	return false
}

func (t *Entry) endKill() { t.killing = false }

// markDead tells the guardians that a tree is dead, and its container gone.
func (t *Entry) markDead() {
	t.dead = true
	if t.effects == nil {
		t.leave()
	}
	t.epoch.ledger.to.broadcast(t.dropping())
}

func (t *Entry) dropping() *Message {
	return &Message{Op: OpDrop, Epoch: t.epoch.Number, Tree: t.Number}
}

// leave drops a settled tree.
func (t *Entry) leave() {
	t.epoch.trees = slices.DeleteFunc(t.epoch.trees, func(other *Entry) bool { return other == t })
}

// Arm makes the watchdog reset the machine unless the tree is proved dead so long after its lease's end. Guardians do not feed the device
// for a tree without a lease.
func (t *Entry) Arm(now, after time.Duration) (seq uint64, err error) {
	if err := t.epoch.leased(now); err != nil {
		return 0, err
	}
	if t.dead {
		return 0, ErrTreeEnded
	}
	if f := t.epoch.fit; f != nil {
		if t.epoch.ledger.Fed() > f.Timeout {
			return 0, ErrMisfit
		}
		after = min(after, f.After)
	}
	t.armed, t.after = true, after // also on a failure: one guardian may know it
	return t.epoch.ledger.to.ask(now, t.arming()), nil
}

// Armed reports whether the watchdog guards the tree, and how long after its lease's end the death must be proved.
func (t *Entry) Armed() (is bool, after time.Duration) { return t.armed, t.after }
