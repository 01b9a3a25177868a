package guard

import (
	"cmp"
	"slices"
	"time"
)

// A tree moves to another lease while its programs run: a follower's, which ends with its supervisor alone, before the follower is
// promoted. P3: from then on it ends with the lease of a session, whose watchdog
// is armed for it later. A demoted primary's moves back. A lease that is over takes no tree in, and gives none away.

// Move has a tree live under another lease. The caller may count on that once both guardians have answered. If one of them refuses, the
// caller has to end the tree: the guardians may know different leases of it.
func (t *Entry) Move(now time.Duration, number uint64, release []byte) (seq uint64, err error) {
	l := t.epoch.ledger
	to, err := l.Epoch(number)
	if err == nil {
		err = to.leased(now)
	}
	if err == nil {
		err = t.epoch.alive(now)
	}
	switch {
	case err != nil:
		return 0, err
	case t.killing || t.ended:
		return 0, ErrTreeEnded
	}
	t.epoch.trees = slices.DeleteFunc(t.epoch.trees, func(other *Entry) bool { return other == t })
	i, _ := slices.BinarySearchFunc(to.trees, t.Number, func(e *Entry, n uint64) int { return cmp.Compare(e.Number, n) })
	to.trees = slices.Insert(to.trees, i, t)
	t.epoch, t.Plant.Release, t.armed = to, release, false
	return l.to.ask(now, &Message{Op: OpMove, Epoch: number, Tree: t.Number, Release: release}), nil
}

// move has a tree live under another lease.
func (w *Ward) move(now time.Duration, t *tree, to *lease, release []byte) error {
	if t.lease.over(now) {
		w.end(now, t.lease, ranOut)
	}
	switch {
	case t.lease.ended, to.ended, t.dead: // its programs are being killed, or would have to be
		return ErrLeaseEnded
	case to.deadline == 0:
		return ErrNoLease
	}
	t.lease.trees = slices.DeleteFunc(t.lease.trees, func(other *tree) bool { return other == t })
	i, _ := to.find(t.number)
	to.trees = slices.Insert(to.trees, i, t)
	t.lease, t.znodes, t.armed = to, release, false
	return nil
}
