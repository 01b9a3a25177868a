package guard

import (
	"cmp"
	"slices"
	"time"
)

const (
	// CloseHeadStart is what the second guardian leaves to the first.
	CloseHeadStart = 250 * time.Millisecond
	// CloseAnyway is how long a closing waits for all trees; after it, what is settled is released without waiting for the rest.
	CloseAnyway = 200 * time.Millisecond

	strikeSlower = time.Second
)

func (w *Ward) lease(number uint64) *lease {
	i, there := slices.BinarySearchFunc(w.leases, number, func(l *lease, n uint64) int { return cmp.Compare(l.number, n) })
	if !there {
		return nil
	}
	return w.leases[i]
}

func (w *Ward) tree(number uint64) *tree {
	i, there := slices.BinarySearchFunc(w.trees, number, func(t *tree, n uint64) int { return cmp.Compare(t.number, n) })
	if !there {
		return nil
	}
	return w.trees[i]
}

func (w *Ward) begin(l *lease) {
	i, _ := slices.BinarySearchFunc(w.leases, l.number, func(l *lease, n uint64) int { return cmp.Compare(l.number, n) })
	w.leases = slices.Insert(w.leases, i, l)
}

func (w *Ward) has(l *lease) bool {
	return slices.ContainsFunc(w.trees, func(t *tree) bool { return t.lease == l })
}

// move sets the lease's deadline: to a later point, or, if the session was granted less, to an earlier one.
func (w *Ward) move(l *lease, m *Message) error {
	if l.ended {
		return ErrLeaseEnded
	}
	if m.Op == OpExtend {
		l.deadline = max(l.deadline, m.Deadline)
		return nil
	}
	if l.deadline > 0 {
		l.deadline = min(l.deadline, m.Deadline)
	}
	for _, t := range w.trees {
		if t.lease == l {
			t.after = min(t.after, m.Grace)
		}
	}
	return nil
}

// end orders every death at once, before looking at any.
func (w *Ward) end(now time.Duration, l *lease, why string) {
	if l.ended {
		return
	}
	l.ended, l.alreadyOver, l.endedAt, l.closeAt = true, false, now, now
	if w.cfg.Index > 0 && !w.orphaned && w.alone == 0 {
		l.closeAt = now + CloseHeadStart
	}
	for _, waits := range []bool{false, true} { // what is held first: an order to a container may wait for the kernel
		for _, t := range w.trees {
			if t.lease != l {
				continue
			}
			for i := range t.bodies {
				if b := &t.bodies[i]; b.Waits() == waits {
					b.Order() // looked at, and struck, in kill
				}
			}
		}
	}
	w.hands.Tell(&Message{Op: OpEnded, Epoch: l.number, Why: why})
}

func (w *Ward) endAll(now time.Duration, why string) {
	for _, l := range w.leases {
		w.end(now, l, why)
	}
}

// kill does one turn of killing and says when the next is due.
func (w *Ward) kill(now time.Duration, l *lease) (next time.Duration) {
	for _, t := range w.trees {
		if t.lease == l && !t.dead {
			next = sooner(next, t.kill(now))
		}
	}
	return next
}

func (t *tree) kill(now time.Duration) (next time.Duration) {
	t.dead, t.tries = true, t.tries+1
	patience := strikeSlower
	for i := range slices.Backward(t.bodies) { // the container is the first: it goes when nothing lives of what was forked into it
		b := &t.bodies[i]
		if b.gone {
			continue
		}
		seen := b.Look(t.dead)
		if seen.Dead {
			b.gone = true
			continue
		}
		t.dead = false // P2: an unproved death is tried again
		if seen.Moves {
			t.tries = 0
		}
		patience = min(patience, seen.Again)
	}
	switch {
	case t.dead:
		return 0
	case t.tries > 200:
		patience = strikeSlower
	}
	return now + patience
}

// closes tells whether there is a session to be closed by this guardian. P2: one whose supervisor died before it had told it everything
// may not have heard of all the trees.
func (w *Ward) closes(l *lease) bool { return w.told && len(l.ticket) > 0 }

// close starts the closing of the session when there is something new to tell it, and says when to look again.
func (w *Ward) close(now time.Duration, l *lease) time.Duration {
	if l.busy || l.closed || !w.closes(l) {
		return 0
	}
	if now < l.closeAt && !w.first {
		return l.closeAt
	}
	var releases [][]byte
	all := true
	for _, t := range w.trees {
		switch {
		case t.lease != l:
		case t.settled():
			releases = append(releases, t.release)
		default:
			all = false
		}
	}
	if !all {
		if anyway := l.endedAt + CloseAnyway; now < anyway {
			return anyway
		}
		if len(releases) <= l.told {
			return 0
		}
	}
	l.busy, l.told = true, len(releases)
	// P2: only what is settled is released.
	w.hands.Close(Closing{Epoch: l.number, Ticket: l.ticket, Releases: releases, All: all})
	return 0
}

// heardClosed notes how a closing went. One that was given up counts: the session expires by itself.
func (w *Ward) heardClosed(c Closed) {
	m := &Message{Op: OpCloser, Epoch: c.Epoch, OK: c.Err == nil}
	if c.Err != nil {
		m.Why = c.Err.Error()
	}
	w.hands.Tell(m)
	if l := w.lease(c.Epoch); l != nil {
		l.busy = false
		l.closed = l.closed || c.All
	}
}

// done tells whether nothing is left to do for a lease that has ended.
func (w *Ward) done(now time.Duration, l *lease) bool {
	settled, awaitsReset := true, false
	for _, t := range w.trees {
		if t.lease == l {
			settled = settled && t.settled()
			awaitsReset = awaitsReset || w.watchdog != nil && t.armed && !t.dead
		}
	}
	settled = settled && !l.busy && (l.closed || !w.closes(l))
	return settled && (w.orphaned || l.finished) || w.orphaned && now >= l.endedAt+Hopeless && !awaitsReset
}

// forget lets go of a lease and its trees.
func (w *Ward) forget(l *lease) {
	w.leases = slices.DeleteFunc(w.leases, func(other *lease) bool { return other == l })
	w.trees = slices.DeleteFunc(w.trees, func(t *tree) bool {
		if t.lease == l {
			t.shut()
		}
		return t.lease == l
	})
}
