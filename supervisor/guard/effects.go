package guard

import (
	"time"
)

// Effects are what the processes of a tree may have done beside themselves, such as an address or a mount, as a guardian is ready to undo
// it. They outlive the processes: a tree is settled once it is dead, and they are undone.
type Effects interface{ Close() }

// Undone is the result of one attempt to undo a tree's effects.
type Undone struct {
	Tree uint64
	Err  error
}

// treeEffects are a tree's effects in a guardian.
type treeEffects struct {
	effects Effects // nil: it has none
	left    bool    // the supervisor could not, and keeps them for its next session
	undone  bool
	busy    bool // an attempt is under way
	err     error
	pause   time.Duration // the next one
	again   time.Duration // not before this
}

// How long the pause after an attempt that failed is.
const (
	firstUndoPause   = time.Second
	longestUndoPause = 30 * time.Second
)

// pending reports whether something is not undone.
func (o *treeEffects) pending() bool { return o.effects != nil && !o.undone }

// holdEffects takes in that a tree's processes may have effects.
func (g *Guardian) holdEffects(t *tree, m *Message) error {
	if t.lease.ended {
		return ErrLeaseEnded
	}
	l, err := g.hands.Hold(m)
	if err != nil {
		return err
	}
	t.release()
	t.treeEffects = treeEffects{effects: l} // those of a demoted primary's previous term are undone
	return nil
}

// settle accepts the supervisor's word about the effects of a dead tree.
func (t *tree) settle(undone bool) {
	t.undone, t.left = t.undone || undone, !undone
	if undone && t.dead {
		t.leave()
	}
}

// release frees what was held to undo the effects.
func (o *treeEffects) release() {
	if o.effects != nil {
		o.effects.Close()
	}
}

// undo starts what is due of the undoing, and returns when to look again. P2: no effect is undone before the tree is dead. A supervisor may
// undo it as well, and the other guardian: a lock decides who does, and shows the others what is left. The second guardian leaves it to the
// first for a moment.
func (g *Guardian) undo(now time.Duration, l *lease) (next time.Duration) {
	begin := l.endedAt
	if g.cfg.Index > 0 && !g.first {
		begin += CloseHeadStart
	}
	for _, t := range l.trees {
		if !t.dead || !t.pending() || t.busy || t.left {
			continue
		}
		if at := max(begin, t.again); now < at {
			next = sooner(next, at)
			continue
		}
		t.busy = true
		g.hands.Undo(t.number, t.effects)
	}
	return next
}

// heardUndone notes the result of an attempt.
func (g *Guardian) heardUndone(now time.Duration, u Undone) {
	t := g.leases.tree(u.Tree)
	if t == nil {
		return
	}
	t.busy, t.err = false, u.Err
	if t.undone = t.undone || u.Err == nil; t.undone {
		t.err = nil
		return
	}
	t.pause = min(max(2*t.pause, firstUndoPause), longestUndoPause)
	t.again = now + t.pause
}

// effectsLeft reports whether a dead tree's effects are known to be left.
func (t *tree) effectsLeft() bool { return t.dead && t.pending() && (t.left || t.err != nil) }

// NoteUndos tells the guardians that the tree's processes may have effects from now on, and how to undo them. The caller starts nothing
// before both know.
func (t *Tree) NoteUndos(now time.Duration, note []byte) (seq uint64, err error) {
	if err := t.lease.leased(now); err != nil {
		return 0, err
	}
	if t.killing || t.ended {
		return 0, ErrTreeEnded
	}
	t.effects = note
	return t.lease.state.to.ask(now, t.effectsMessage()), nil
}

func (t *Tree) effectsMessage() *Message {
	return &Message{Op: OpEffects, Epoch: t.lease.Number, Tree: t.Number, Ticket: t.effects, Name: t.Spec.Name}
}

// ReportUndone tells the guardians that the effects of a dead tree are undone; or that this process keeps them for its next session: then
// no guardian closes this one.
func (t *Tree) ReportUndone(undone bool) {
	if t.effects == nil {
		return
	}
	t.effects = nil
	t.lease.state.to.broadcast(&Message{Op: OpSettled, Epoch: t.lease.Number, Tree: t.Number, OK: undone})
	if t.dead {
		t.leave()
	}
}
