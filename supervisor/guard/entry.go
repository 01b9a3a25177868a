package guard

import (
	"slices"
	"time"
)

// Plant enters a new tree. It may be used once both guardians know it.
func (p *Pair) Plant(now time.Duration, number uint64, plant Plant) (t *Entry, seq uint64, err error) {
	e, err := p.live(now, number)
	if err != nil {
		return nil, 0, err
	}
	p.trees++
	t = &Entry{Number: p.trees, Plant: plant, epoch: e}
	e.trees = append(e.trees, t)
	return t, p.ask(now, t.registration()), nil
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
func (p *Pair) MayStart(now time.Duration, t *Entry) error {
	if err := p.leased(now, t.epoch); err != nil {
		return err
	}
	if t.killing || t.ended {
		return ErrTreeEnded
	}
	t.starting++
	return nil
}

// Started tells that a start is through, however it went: what came of it is seen by whoever looks at the tree.
func (p *Pair) Started(t *Entry) {
	t.starting--
	p.news()
}

// Join enters what was started in a tree. P3: it must not run anything before both guardians hold it.
func (p *Pair) Join(now time.Duration, t *Entry, ref Ref, along any) (seq uint64, err error) {
	if err := p.alive(now, t.epoch); err != nil {
		return 0, err
	}
	if t.killing || t.ended {
		return 0, ErrTreeEnded
	}
	m := Member{ref, along}
	t.members = append(t.members, m)
	return p.ask(now, t.message(OpBody, m)), nil
}

// Shed tells of a proved death in a tree.
func (p *Pair) Shed(t *Entry, ref Ref) {
	t.members = slices.DeleteFunc(t.members, func(m Member) bool { return m.Ref == ref })
	if !t.buried {
		p.broadcast(t.message(OpShed, Member{Ref: ref}))
	}
}

// Kill begins to kill a tree: until Spare nothing may be started in it, and with end never again. over: its end is proved already.
func (p *Pair) Kill(t *Entry, end bool) (over bool) {
	if t.buried {
		return true
	}
	t.killing, t.ended = true, t.ended || end
	return false
}

// Spare ends a Kill.
func (p *Pair) Spare(t *Entry) { t.killing = false }

// Round begins a round of killing: what is in the tree is listed after it. unseen: something is being started, which may come after
// that, so that another round is needed after the next change. P2: what is found dead proves nothing while a start is on its way.
func (p *Pair) Round(t *Entry) (unseen bool) { return t.starting > 0 }

// Bury tells the guardians that a tree is dead, and its container gone.
func (p *Pair) Bury(t *Entry) {
	t.buried = true
	t.epoch.trees = slices.DeleteFunc(t.epoch.trees, func(other *Entry) bool { return other == t })
	p.broadcast(&Message{Op: OpDrop, Epoch: t.epoch.Number, Tree: t.Number})
}

// Feed has the guardians feed a watchdog.
func (p *Pair) Feed(now, timeout time.Duration, device any) (seq uint64) {
	p.watchdog = &Message{Op: OpWatchdog, Grace: timeout, Along: device}
	return p.ask(now, p.watchdog)
}

// Retime tells the guardians that the watchdog has another timeout.
func (p *Pair) Retime(timeout time.Duration) {
	p.watchdog = &Message{Op: OpWatchdog, Grace: timeout, Along: p.watchdog.Along}
	p.broadcast(p.watchdog)
}

// Fed is the timeout of the watchdog that is fed; 0: there is none.
func (p *Pair) Fed() time.Duration {
	if p.watchdog == nil {
		return 0
	}
	return p.watchdog.Grace
}

// Unfeed has the guardians let go of the watchdog, unless a tree needs it.
func (p *Pair) Unfeed(now time.Duration) (seq uint64, needed bool) {
	for _, e := range p.epochs {
		if slices.ContainsFunc(e.trees, func(t *Entry) bool { return t.armed }) {
			return 0, true
		}
	}
	p.watchdog = nil
	return p.ask(now, &Message{Op: OpUnwatch}), false
}

// Arm has the machine reset unless the tree is proved dead so long after its lease's end. What has no lease is not fed for.
func (p *Pair) Arm(now time.Duration, t *Entry, after time.Duration) (seq uint64, err error) {
	if err := p.leased(now, t.epoch); err != nil {
		return 0, err
	}
	if t.buried {
		return 0, ErrTreeEnded
	}
	if f := t.epoch.fit; f != nil {
		if p.Fed() > f.Timeout {
			return 0, ErrMisfit
		}
		after = min(after, f.After)
	}
	t.armed, t.after = true, after // it stays so on a failure: one guardian may have heard of it
	return p.ask(now, t.arming()), nil
}

// Armed tells whether the watchdog is for the tree, and until when after its lease's end its death is to be proved.
func (t *Entry) Armed() (is bool, after time.Duration) { return t.armed, t.after }

// Refit tells whether the watchdog has to be set to a shorter timeout for a lease that has become shorter. That feeds it once: it must
// not be done when that would be too late.
func (p *Pair) Refit(now, deadline time.Duration, fit Fit) (needed bool, err error) {
	if p.Fed() <= fit.Timeout {
		return false, nil
	}
	if fit.Timeout < time.Second || now+fit.Timeout > deadline+fit.After {
		return true, errTooShort
	}
	return true, nil
}
