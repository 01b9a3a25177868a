package election

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"
)

// ErrTorn says that ZooKeeper shows what cannot be: its servers disagree, or went back in time.
var ErrTorn = errors.New("ZooKeeper shows a lock of this session from before a later claim: its servers disagree about their data")

func (c *Candidate) torn() error {
	c.s.Expire(ErrTorn)
	return ErrTorn
}

// unclaimedSince tells whether the folder shows that nobody has claimed since the lock of this token was made. Each claim writes to
// the folder and makes a child of it, the lock, in one transaction. Whoever writes to the folder by hand makes no child; whoever makes
// or deletes a child by hand, such as a breadcrumb, does not write to the folder: so either trace is enough.
func unclaimedSince(dir zk.Stat, token int64) bool { return dir.Mzxid == token || dir.Pzxid == token }

// adopt makes a claim of a lock that is ours, whatever the breadcrumb says. The lock is looked at last: that it still stands
// tells that nobody has claimed before the folder and the breadcrumb were read.
//
// P1: so nothing may tell of a claim after this one. By a fault of its own (ZOOKEEPER-4712) a server may bring back a lock that was
// given back long ago. To delete it could hit a later one, which has the same path and version, so the session ends, and with it that
// lock for good. The same goes for a service that was written to by hand in so many places that it looks like that.
func (c *Candidate) adopt(ctx context.Context, crumb BreadCrumb, lock view) (*Claim, error) {
	dir, err := outcome(ctx, c.s, func() (zk.Stat, error) { return c.s.stat(ctx, c.paths.Dir()) })
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", c.paths.Dir(), err)
	}
	claim := c.claim(crumb, lock.stat.Czxid, dir.Version)
	if err := c.readCrumb(ctx, claim); err != nil {
		return nil, err
	}
	err = claim.verify(ctx)
	if errors.Is(err, ErrLost) {
		c.unsure = false
		return nil, c.denied.wait(ctx, c.s, err)
	}
	if err != nil {
		return nil, err
	}
	switch {
	case !unclaimedSince(dir, claim.Token) || c.newest > claim.Token:
		return nil, c.torn()
	case born(dir) != c.birth:
		c.unsure = false
		return nil, c.rebirth(ctx, claim)
	case dir.Mzxid != claim.Token || claim.PreviousToken > claim.Token:
		return nil, c.cede(ctx, claim)
	}
	c.unsure = false
	return claim, nil
}

// cede gives up a lock beside which somebody has written by hand, and our breadcrumb with it: as after a lost race, Wait tells what
// comes next. Nothing was started under it.
//
// P1: the leader has to know of no more claims than this server, or the lock there is not ours. Where it refuses that again and again,
// they disagree.
func (c *Candidate) cede(ctx context.Context, claim *Claim) error {
	c.s.log.Warn("somebody has written to the service by hand: taking its lock anew", "service", c.paths.Service, "token", claim.Token)
	ops := []any{claim.unclaimed()}
	if claim.found && claim.Previous == nil {
		ops = append(ops, &zk.DeleteRequest{Path: c.paths.Crumb(), Version: claim.version})
	}
	_, err := c.s.multi(ctx, append(ops, &zk.DeleteRequest{Path: c.paths.Lock(), Version: -1})...)
	switch {
	case err == nil:
		c.unsure = false
		c.s.forget(c.paths.Service)
	case errors.Is(err, zk.ErrBadVersion), errors.Is(err, zk.ErrNoNode):
		if !c.ceding.passes(err) {
			return c.torn()
		}
		return c.ceding.wait(ctx, c.s, err)
	case !unknown(err):
		return fmt.Errorf("give the lock up: %w", err)
	}
	return c.denied.wait(ctx, c.s, err)
}
