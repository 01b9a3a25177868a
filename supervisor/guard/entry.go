package guard

import (
	"slices"
	"time"
)

// Plant enters a new tree. It may be used once both guardians know it.
func (l *Ledger) Plant(now time.Duration, number uint64, plant Plant) (t *Entry, seq uint64, err error) {
	e, err := l.live(now, number)
	if err != nil {
		return nil, 0, err
	}
	l.trees++
	t = &Entry{Number: l.trees, Plant: plant, epoch: e}
	e.trees = append(e.trees, t)
	return t, l.to.ask(now, t.registration()), nil
}

// Epoch is what the tree lives under.
func (t *Entry) Epoch() *Epoch { return t.epoch }

func (t *Entry) registration() *Message {
	m := &Message{Op: OpTree, Epoch: t.epoch.Number, Tree: t.Number, Release: t.Plant.Release, Mark: t.Plant.Mark, Along: t.Plant.Along}
	if t.Plant.Ref != nil {
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

// MayStart is the last look at the lease before a fork. Started has to follow. What makes it safe that time passes between it and the
// fork is the container: a guardian that ends the lease takes it away, and the fork fails.
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

// Started tells that a start is through, however it went: what came of it is seen by whoever looks at the tree.
func (t *Entry) Started() {
	t.starting--
	t.epoch.ledger.to.news()
}

// Join enters what was started in a tree. P3: it must not run anything before both guardians hold it.
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

// Shed tells of a proved death in a tree.
func (t *Entry) Shed(ref Ref) {
	t.members = slices.DeleteFunc(t.members, func(m Member) bool { return m.Ref == ref })
	if !t.dead {
		t.epoch.ledger.to.broadcast(t.message(OpShed, Member{Ref: ref}))
	}
}

// BeginKill begins to kill a tree: until EndKill nothing may be started in it, and with end never again. over: its end is proved already.
func (t *Entry) BeginKill(end bool) (over bool) {
	if t.dead {
		return true
	}
	t.killing, t.ended = true, t.ended || end
	return false
}

// EndKill ends what BeginKill began.
func (t *Entry) EndKill() { t.killing = false }

// StartPending is asked when a round of killing begins, before what is in the tree is listed: something that is being started may come after
// that, and then another round is needed after the next change. P2: what is found dead proves nothing while a start is on its way.
func (t *Entry) StartPending() bool { return t.starting > 0 }

// MarkDead tells the guardians that a tree is dead, and its container gone.
func (t *Entry) MarkDead() {
	t.dead = true
	t.epoch.trees = slices.DeleteFunc(t.epoch.trees, func(other *Entry) bool { return other == t })
	t.epoch.ledger.to.broadcast(&Message{Op: OpDrop, Epoch: t.epoch.Number, Tree: t.Number})
}

// Arm has the machine reset unless the tree is proved dead so long after its lease's end. What has no lease is not fed for.
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
	t.armed, t.after = true, after // it stays so on a failure: one guardian may have heard of it
	return t.epoch.ledger.to.ask(now, t.arming()), nil
}

// Armed tells whether the watchdog is for the tree, and until when after its lease's end its death is to be proved.
func (t *Entry) Armed() (is bool, after time.Duration) { return t.armed, t.after }
