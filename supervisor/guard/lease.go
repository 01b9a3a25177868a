package guard

import (
	"cmp"
	"slices"
	"time"
)

const (
	// CloseHeadStart is how long the second guardian waits for the first to close a session.
	CloseHeadStart = 250 * time.Millisecond
	// CloseAnyway is how long a closing waits for all trees; after that it releases the settled ones without the rest.
	CloseAnyway = 200 * time.Millisecond

	strikeSlower = time.Second
)

// leases are in numerical order.
type leases []*lease

func (all leases) find(number uint64) (int, bool) {
	return slices.BinarySearchFunc(all, number, func(l *lease, n uint64) int { return cmp.Compare(l.number, n) })
}

func (all leases) lease(number uint64) *lease {
	i, there := all.find(number)
	if !there {
		return nil
	}
	return all[i]
}

func (all leases) tree(number uint64) *tree {
	for _, l := range all {
		if i, there := l.find(number); there {
			return l.trees[i]
		}
	}
	return nil
}

func (l *lease) find(number uint64) (int, bool) {
	return slices.BinarySearchFunc(l.trees, number, func(t *tree, n uint64) int { return cmp.Compare(t.number, n) })
}

func (all *leases) begin(l *lease) {
	i, _ := all.find(l.number)
	*all = slices.Insert(*all, i, l)
}

// end orders every death at once, before looking at any.
func (g *Guardian) end(now time.Duration, l *lease, why string) {
	if l.ended {
		return
	}
	l.ended, l.alreadyOver, l.endedAt, l.closeAt, l.why = true, false, now, now, why
	for _, t := range l.trees {
		t.struck = t.lives > 0
	}
	if g.cfg.Index > 0 && !g.orphaned && g.alone == 0 {
		l.closeAt = now + CloseHeadStart
	}
	for _, waits := range []bool{false, true} { // first the boxes held by a pidfd: an order to a container may wait for the kernel
		for _, t := range l.trees {
			for i := range t.boxes {
				if b := &t.boxes[i]; b.Waits() == waits {
					b.Order() // kill looks at it, and strikes again
				}
			}
		}
	}
	g.hands.Tell(&Message{Op: OpEnded, Epoch: l.number, Why: why})
}

func (g *Guardian) endAll(now time.Duration, why string) {
	for _, l := range g.leases {
		g.end(now, l, why)
	}
}

// kill does one step of killing, and returns when the next one is due.
func (l *lease) kill(now time.Duration) (next time.Duration) {
	for _, t := range l.trees {
		if !t.dead {
			next = sooner(next, t.kill(now))
			t.diedAt = now
		}
	}
	return next
}

func (t *tree) kill(now time.Duration) (next time.Duration) {
	t.dead, t.tries = true, t.tries+1
	patience := strikeSlower
	for i := range slices.Backward(t.boxes) { // the container is the first of them: it goes after the processes that were forked into it
		b := &t.boxes[i]
		if b.gone {
			continue
		}
		seen := b.Look(t.dead)
		if seen.Dead {
			b.gone = true
			continue
		}
		t.dead = false // P2: retry an unproved death
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

// closes reports whether this guardian must close a session. P2: a guardian whose supervisor died before it had told it everything may
// not know all trees.
func (g *Guardian) closes(l *lease) bool { return g.told && len(l.ticket) > 0 }

// close starts the closing of the session when it has news for it, and returns when to look again.
func (g *Guardian) close(now time.Duration, l *lease) time.Duration {
	if l.busy || l.closed || !g.closes(l) {
		return 0
	}
	if now < l.closeAt && !g.first {
		return l.closeAt
	}
	c, knows := l.closing()
	if !c.All {
		if anyway := l.endedAt + CloseAnyway; now < anyway {
			return anyway
		}
		if knows <= l.told {
			return 0
		}
	}
	l.busy, l.told = true, knows
	g.hands.Close(c)
	return 0
}

// closing is the order by what is known by now, and how much that is. P2: release only settled trees.
func (l *lease) closing() (c Closing, knows int) {
	c = Closing{Epoch: l.number, Ticket: l.ticket, Exactly: true, All: true}
	for _, t := range l.trees {
		if t.dead {
			c.DiedAt, c.Exactly = max(c.DiedAt, t.diedAt), c.Exactly && t.struck
		}
		switch {
		case t.settled() && (len(t.znodes) == 0 || l.shares(t)):
		case t.settled() && t.effects == nil:
			c.Releases = append(c.Releases, t.znodes)
		case t.settled():
			c.Undone = append(c.Undone, t.znodes)
		case t.effectsLeft():
			c.Left, c.All = append(c.Left, t.znodes), false
		default:
			c.All = false
		}
	}
	return c, 2*len(c.Releases) + 2*len(c.Undone) + len(c.Left)
}

// shares reports whether a release has to wait for another tree that is for the same lock, or comes with it.
func (l *lease) shares(t *tree) bool {
	return slices.ContainsFunc(l.trees, func(other *tree) bool {
		return other != t && string(other.znodes) == string(t.znodes) &&
			(!other.settled() || other.effects == nil && other.number < t.number)
	})
}

// heardClosed notes the result of a closing. One that was given up counts, too: the session expires by itself.
func (g *Guardian) heardClosed(c Closed) {
	m := &Message{Op: OpCloser, Epoch: c.Epoch, OK: c.Err == nil}
	if c.Err != nil {
		m.Why = c.Err.Error()
	}
	g.hands.Tell(m)
	if l := g.leases.lease(c.Epoch); l != nil {
		l.busy = false
		l.closed, l.refused = l.closed || c.All, c.Err
	}
}

// done reports whether nothing is left to do for a lease that has ended.
func (g *Guardian) done(now time.Duration, l *lease) bool {
	settled, left, awaitsReset := true, false, false
	for _, t := range l.trees {
		settled, left = settled && (t.settled() || t.left), left || t.left
		awaitsReset = awaitsReset || g.watchdog != nil && t.armed && !t.dead
	}
	_, knows := l.closing()
	settled = settled && !l.busy && (l.closed || !g.closes(l) || left && l.told >= knows)
	return settled && (g.orphaned || l.finished) || g.orphaned && now >= l.endedAt+Hopeless && !awaitsReset
}

// forget drops a lease and its trees.
func (all *leases) forget(l *lease) {
	*all = slices.DeleteFunc(*all, func(other *lease) bool { return other == l })
	for _, t := range l.trees {
		t.shut()
		t.treeEffects.release()
	}
}
