package election

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-zookeeper/zk"
)

// ErrUnresolved says that the lock may be ours, and that no answer said so in time.
var ErrUnresolved = errors.New("it is not known whether the lock was taken again")

// Lapsed is the claim of a previous session of this node, which has expired, while the programs of its term run on. Reclaim makes it a
// claim of this session. Until then Release only removes the breadcrumb.
func (c *Candidate) Lapsed(carried CarriedClaim) (*Claim, error) {
	claim, err := c.Resume(carried)
	if err == nil {
		claim.gone = true
	}
	return claim, err
}

// Reclaim takes the lock again for a lapsed claim: its term goes on in this session, and keeps its token. It succeeds only if nobody has
// claimed the lock since the claim was made. It returns ErrLost if that is not so, or if the breadcrumb does not name the term any
// more, and ErrUnresolved if the lock may be ours all the same: then the session has to end.
//
// P1: ctx has to end before the promises do that forbid other nodes a start. Whoever has claimed since has deleted the name of our claim,
// which the transaction does as well. Whoever claims after it reads a breadcrumb that names this session.
func (c *Candidate) Reclaim(ctx context.Context, claim *Claim) error {
	t, unanswered := &c.acquisition, false
	name := c.paths.newClaim()
	for again := (pacing{}); ; {
		done, err := t.reclaim(ctx, claim, name, &unanswered)
		if done {
			return nil
		}
		if again.passes(err) {
			if err = again.wait(ctx, t.s.client, err); err == nil {
				continue
			}
		}
		if unanswered {
			return errors.Join(ErrUnresolved, err)
		}
		t.s.locks.drop(t.paths.Service)
		return err
	}
}

// reclaim is one attempt, to make a claim of this name. unanswered: one of them was not answered.
func (t *acquisition) reclaim(ctx context.Context, claim *Claim, name string, unanswered *bool) (done bool, err error) {
	if *unanswered { // the unanswered request may not be seen yet
		if err := t.s.sync(ctx, t.paths.Dir()); err != nil {
			return false, err
		}
	}
	look, err := t.s.names(ctx, t.paths)
	if errors.Is(err, zk.ErrNoNode) {
		return false, fmt.Errorf("%w: %w", ErrLost, ErrDeleted)
	} else if err != nil {
		return false, err
	}
	trail, err := t.s.get(ctx, t.paths.Crumb())
	if err != nil {
		return false, err
	}
	lock, err := t.s.get(ctx, t.paths.Lock()) // last: what was read before it belongs to a lock that is still there
	if err != nil {
		return false, err
	}
	crumb, err := ReadBreadCrumb(trail.data)
	ours := trail.exists && err == nil && crumb.Node == claim.crumb.Node &&
		bytes.Equal(crumb.Tree, claim.crumb.Tree) && !crumb.Leftover.Known
	switch {
	case *unanswered && ours && crumb.Session == SessionName(t.s.ID()) && lock.exists && lock.stat.EphemeralOwner == t.s.ID() &&
		slices.Contains(look.Claims, name):
		*unanswered = false
		claim.reclaimed(crumb, trail.stat.Version, name, lock.stat.Czxid)
		return true, nil
	case !slices.Contains(look.Claims, claim.name):
		return false, fmt.Errorf("%w: another node has claimed it", ErrLost)
	case !ours || crumb.Session != claim.crumb.Session:
		return false, fmt.Errorf("%w: the record of the active node is not that of this activation any more", ErrLost)
	}
	if err := t.failIfSetBack(ctx); err != nil {
		return false, err
	}
	if lock.exists { // it is about to go with the previous session
		return false, zk.ErrNodeExists
	}
	return t.retake(ctx, claim, name, crumb, trail.stat.Version, unanswered)
}

// retake is the transaction.
func (t *acquisition) retake(
	ctx context.Context, claim *Claim, name string, crumb BreadCrumb, version int32, unanswered *bool,
) (done bool, err error) {
	crumb.Session, crumb.LeaseMs, crumb.Beat = SessionName(t.s.ID()), max(crumb.LeaseMs, t.s.LeaseLength().Milliseconds()), t.s.rests()
	crumb.Token = claim.Token
	self := Lock{Node: crumb.Node, Host: crumb.Host, Pid: t.s.cfg.Node.Pid, Since: crumb.Since, Token: claim.Token}
	t.s.locks.add(t.paths)
	ops := []any{
		&zk.SetDataRequest{Path: t.paths.Dir(), Data: encode(self), Version: -1},
		remove(claim.name),
		&zk.CreateRequest{Path: name, Acl: t.s.acl},
		&zk.SetDataRequest{Path: t.paths.Crumb(), Data: encode(crumb), Version: version},
		&zk.CreateRequest{Path: t.paths.Lock(), Data: encode(self), Acl: t.s.acl, Flags: zk.FlagEphemeral},
	}
	if crumb.Name != "" {
		ops = append(ops, there(t.paths.record(crumb.Name)))
	}
	results, _, err := t.s.transact(ctx, ops...)
	switch {
	case unknown(err):
		*unanswered = true
		return false, err
	case err != nil:
		return false, err
	case len(results) != len(ops) || results[0].Stat == nil:
		*unanswered = true
		return false, errUnanswered
	}
	dir := *results[0].Stat
	if dir.Mzxid < t.newest {
		*unanswered = true
		return false, t.endTornSession()
	}
	*unanswered = false
	claim.reclaimed(crumb, version+1, name, dir.Mzxid)
	t.newest = dir.Mzxid
	t.saw(dir.Mzxid)
	return true, nil
}

// reclaimed makes a lapsed claim one of the lock that is ours now.
func (c *Claim) reclaimed(crumb BreadCrumb, version int32, name string, czxid int64) {
	c.crumb, c.version, c.record, c.name, c.czxid, c.gone = crumb, version, crumb.Name, name, czxid, false
}
