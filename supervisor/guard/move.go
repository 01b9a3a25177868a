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
func (t *Tree) Move(now time.Duration, number uint64, release []byte) (seq uint64, err error) {
	s := t.lease.state
	to, err := s.Lease(number)
	if err == nil {
		err = to.leased(now)
	}
	if err == nil {
		err = t.lease.alive(now)
	}
	switch {
	case err != nil:
		return 0, err
	case t.killing || t.ended:
		return 0, ErrTreeEnded
	}
	t.lease.trees = slices.DeleteFunc(t.lease.trees, func(other *Tree) bool { return other == t })
	i, _ := slices.BinarySearchFunc(to.trees, t.Number, func(t *Tree, n uint64) int { return cmp.Compare(t.Number, n) })
	to.trees = slices.Insert(to.trees, i, t)
	t.lease, t.Spec.Release, t.armed = to, release, false
	return s.to.ask(now, &Message{Op: OpMove, Epoch: number, Tree: t.Number, Release: release}), nil
}

// move has a tree live under another lease.
func (g *Guardian) move(now time.Duration, t *tree, to *lease, release []byte) error {
	if t.lease.over(now) {
		g.end(now, t.lease, ranOut)
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
