package election

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"understudy/supervisor/printable"
)

// watchHolder watches the beat of the lock's holder. A lock that belongs
// to no session, or names no node, is left to whoever made it by hand.
func (t *acquisition) watchHolder(lock view) *beat {
	holder, err := decode[Lock](lock.data)
	if err != nil || !printable.IsName(holder.Node) || lock.stat.EphemeralOwner == 0 {
		return nil
	}
	return t.s.beats.watch(beatOf{holder.Node, lock.stat.EphemeralOwner})
}

// vacate deletes the lock of a node whose beat is over, as ZooKeeper does at the end of a session: from then on all is as after that. trail
// is the breadcrumb that was read last.
//
// P3: the transaction succeeds only while the beat is as it was seen for longer
// than a lease, and while nobody has claimed since the look at the names.
func (t *acquisition) vacate(ctx context.Context, held *beat, lock, trail view) error {
	crumb, err := ReadBreadCrumb(trail.data)
	if trail.exists && (err != nil || crumb.Failsafe.Binds() && (t.outlasts == nil || t.outlasts(&crumb))) {
		return nil
	}
	still := held.still()
	lease := max(still.told, time.Duration(crumb.LeaseMs)*time.Millisecond)
	if lease == 0 {
		lease = t.s.Longest()
	}
	if !t.s.before.has(held.of.session) && (!still.seen || t.s.cfg.Now() < still.since+OverAfter(lease)) {
		return nil
	}
	if name, err := t.s.claimOf(ctx, t.names, lock.stat); err != nil || name == "" && len(t.names.Claims) > 0 {
		return cmp.Or(err, errUnanswered) // P3: the names were looked at after the lock, and are of a later one
	}
	gone := slices.Concat(t.names.unclaimed(), still.unmoved, []any{remove(t.paths.Lock())})
	buried := t.s.before.wasDead(held.of.session) && crumb.Session == SessionName(held.of.session) && crumb.Name != "" &&
		!crumb.Awaits() && !crumb.Failsafe.Binds()
	if buried { // P2: nothing of it is alive, or left. Who takes the lock next has nothing to fence, whichever node that is
		n := note{cmp.Or(crumb.Token, trail.stat.Czxid), EndedBy(time.Now())}
		_ = t.s.set(InTurn(ctx), t.paths.History(), encode(n), -1) // the history is less exact without it
		record := []any{&zk.DeleteRequest{Path: t.paths.Crumb(), Version: trail.stat.Version}, remove(t.paths.record(crumb.Name))}
		_, err = t.s.multi(InTurn(ctx), slices.Concat(gone, record)...)
	}
	if !buried || errors.Is(err, zk.ErrNoNode) { // or somebody has deleted the record's name by hand
		_, err = t.s.multi(InTurn(ctx), gone...)
	}
	switch {
	case err == nil:
		t.s.log.Info("the node that has the lock sends no heartbeats: its lock is free now",
			"service", t.paths.Service, "node", held.of.node)
		return nil
	case errors.Is(err, zk.ErrBadVersion): // there was one
		return nil
	case errors.Is(err, zk.ErrNoNode): // what was seen has changed
		return errUnanswered
	case unknown(err):
		return err
	}
	return fmt.Errorf("take the lock of a node that sends no heartbeats: %w", err)
}

// WatchLock notes how the lock goes, until ctx or the session ends: for a candidate that may not take it now.
func (c *Candidate) WatchLock(ctx context.Context) error {
	for {
		lock, err := outcome(ctx, c.s.client, func() (view, error) { return c.acquisition.getLock(ctx) })
		if err != nil {
			return err
		}
		if err := c.s.await(ctx, lock.changed); err != nil {
			return err
		}
	}
}
