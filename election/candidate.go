package election

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"
)

// Order is how candidates take turns.
type Order string

// Race: everybody watches the lock. Queue: each watches its predecessor only.
const (
	Race  Order = "race"
	Queue Order = "queue"
)

// Birth identifies a service's folder: another one means that ZooKeeper lost its data.
type Birth struct{ Czxid, Ctime int64 }

// Candidate stands for election to one service, within one session.
type Candidate struct {
	s     *Session
	paths Paths
	order Order
	guid  string // finds our place in the queue
	place string // our znode in the queue
	left  bool   // nothing in the queue is ours

	priority   int             // ahead of whom we stand in the queue
	preference string          // our znode in preferred
	newest     int64           // the greatest token that was seen
	unsure     bool            // an attempt to take the lock was not answered
	denied     pacing          // of attempts that are refused although the lock looks free
	ceding     pacing          // of attempts to give a lock up that was written beside
	nobodys    map[string]bool // places in the queue that no session has: a restore has made them, and they never go
	birth      Birth           // of the folder that it stood with
	tried      BreadCrumb      // what was to be written with that

	announced bool // members/<node> is ours
}

// Stand prepares to stand for a service.
func (s *Session) Stand(ctx context.Context, service string, order Order) (*Candidate, Birth, error) {
	p := Paths{Root: s.cfg.Root, Service: service}
	folders := []string{p.Dir(), p.Members(), p.Queue(), p.History(), p.Control(), p.Preferred()}
	err := s.ensure(ctx, folders)
	if errors.Is(err, zk.ErrNoNode) { // all services were deleted by hand
		err = s.ensure(ctx, append(append(parents(s.cfg.Root), ServicesDir(s.cfg.Root)), folders...))
	}
	if err != nil {
		return nil, Birth{}, err
	}
	v, err := outcome(ctx, s, func() (zk.Stat, error) { return s.stat(ctx, p.Dir()) })
	if err != nil {
		return nil, Birth{}, fmt.Errorf("read %s: %w", p.Dir(), err)
	}
	birth := born(v)
	return &Candidate{s: s, paths: p, order: order, birth: birth}, birth, nil
}

func born(folder zk.Stat) Birth { return Birth{folder.Czxid, folder.Ctime} }

// Opening is a chance to take the lock, with what is known of the breadcrumb.
type Opening struct {
	ours   *view // the lock, when it is ours already: the answer to its creation was lost
	clear  bool  // no breadcrumb
	wishes *Wishes
}

// Ours tells that the lock is ours already.
func (o Opening) Ours() bool { return o.ours != nil }

// Under makes the taking of the lock depend on the wishes' being the ones that were heeded: nobody is promoted once the
// service is paused.
func (o Opening) Under(w Wishes) Opening {
	o.wishes = &w
	return o
}

// Wait returns when the lock may be had.
func (c *Candidate) Wait(ctx context.Context) (Opening, error) {
	return outcome(ctx, c.s, func() (Opening, error) { return c.opening(ctx) })
}

func (c *Candidate) opening(ctx context.Context) (Opening, error) {
	unsure := c.unsure
	if c.order == Queue && !unsure { // when it may be ours, whoever has come ahead of us may be waiting for us
		if err := c.reachHead(ctx); err != nil {
			return Opening{}, err
		}
	}
	if c.order != Queue && c.guid != "" { // a former candidate of this session may have left a place behind
		_ = c.Withdraw(ctx) // nobody but others waits for that, and it is tried again
	}
	if unsure { // what was not answered may not be seen yet
		if err := c.s.sync(ctx, c.paths.Dir()); err != nil {
			return Opening{}, err
		}
	}
	lock, trail, err := c.watch(ctx)
	if err != nil {
		return Opening{}, err
	}
	c.unsure = lock.exists && lock.stat.EphemeralOwner == c.s.ID() // until Take has adopted it
	if c.unsure {
		return Opening{ours: &lock}, nil
	}
	if c.order == Queue && unsure {
		return c.opening(ctx)
	}
	if !lock.exists {
		return Opening{clear: !trail.exists}, nil
	}
	c.denied = pacing{}
	defer c.s.awaits(lock.stat.EphemeralOwner, lock.data)()
	trail, err = c.wait(ctx, lock, trail)
	return Opening{clear: !trail.exists}, err
}

// Take takes the lock. With no breadcrumb left behind, ours is written in the same transaction, and the claim is complete;
// otherwise Previous is set. It returns nothing when somebody was quicker, or when that is not known: then Wait tells.
func (c *Candidate) Take(ctx context.Context, o Opening, crumb BreadCrumb) (*Claim, error) {
	me := c.s.cfg.Node
	crumb.Node, crumb.Host, crumb.Machine, crumb.Boot = me.Node, me.Host, me.Machine, me.Boot
	crumb.Session, crumb.SessionMs = SessionName(c.s.ID()), c.s.Timeout().Milliseconds()
	crumb.Since = time.Now().UTC()
	if o.ours != nil {
		return c.adopt(ctx, crumb, *o.ours)
	}
	return c.create(ctx, crumb, o)
}

// Unsure tells that the lock may be ours without anybody's knowing: Wait finds out.
func (c *Candidate) Unsure() bool { return c.unsure }

// Settled waits until the service has no breadcrumb: whoever it named is known to be dead.
func (c *Candidate) Settled(ctx context.Context) error {
	for again := (pacing{}); ; {
		v, err := c.s.look(ctx, c.paths.Crumb())
		switch {
		case unknown(err):
			err = again.wait(ctx, c.s, err)
		case err == nil && !v.exists:
			return nil
		case err == nil:
			err = c.s.await(ctx, v.changed)
		}
		if err != nil {
			return err
		}
	}
}

// watch reads and watches lock and breadcrumb, so that nothing has to be read when it counts.
func (c *Candidate) watch(ctx context.Context) (lock, trail view, err error) {
	if trail, err = c.s.look(ctx, c.paths.Crumb()); err != nil {
		return lock, trail, err
	}
	lock, err = c.s.look(ctx, c.paths.Lock())
	c.newest = max(c.newest, lock.stat.Czxid)
	return lock, trail, err
}

// crumbFirst is how long the breadcrumb's removal may come before the lock's, of which it is a part as a rule.
const crumbFirst = 50 * time.Millisecond

// wait returns when the lock may be free, with what is known of the breadcrumb then.
func (c *Candidate) wait(ctx context.Context, lock, trail view) (view, error) {
	var again <-chan time.Time // when to read a breadcrumb that has changed
	for {
		resumed := c.s.Resumed()
		select {
		case ev := <-lock.changed:
			select { // what happened to the breadcrumb before the lock's deletion was told before it
			case seen := <-trail.changed:
				trail.exists = seen.Type != zk.EventNodeDeleted
			default:
			}
			if ev.Type == zk.EventNodeDeleted {
				return trail, nil
			}
			return trail, errUnanswered // something else: read again
		case seen := <-trail.changed:
			trail = view{exists: seen.Type != zk.EventNodeDeleted}
			again = time.After(crumbFirst) // nothing is read while the lock may be about to go
		case <-again:
			fresh, err := c.s.look(ctx, c.paths.Crumb())
			if err != nil {
				return trail, err
			}
			trail, again = fresh, nil
		case <-resumed:
			return trail, errUnanswered
		case <-c.s.ended:
			return trail, c.s.Over()
		case <-ctx.Done():
			return trail, context.Cause(ctx)
		}
	}
}

// create makes the lock, and our breadcrumb with it when there is none. It raises the version of the service's folder, which
// numbers the claims.
func (c *Candidate) create(ctx context.Context, crumb BreadCrumb, o Opening) (*Claim, error) {
	self := Lock{Node: crumb.Node, Host: crumb.Host, Pid: c.s.cfg.Node.Pid, Since: crumb.Since}
	c.s.remember(c.paths)
	ops := []any{
		&zk.CreateRequest{Path: c.paths.Lock(), Data: encode(self), Acl: c.s.acl, Flags: zk.FlagEphemeral},
		&zk.SetDataRequest{Path: c.paths.Dir(), Data: encode(self), Version: -1},
	}
	if o.clear {
		ops = append(ops, &zk.CreateRequest{Path: c.paths.Crumb(), Data: encode(crumb), Acl: c.s.acl})
	}
	if o.wishes != nil {
		ops = append(ops, &zk.CheckVersionRequest{Path: c.paths.Control(), Version: o.wishes.version})
	}
	results, failed, err := c.s.transact(ctx, ops...)
	c.unsure, c.tried = unknown(err), crumb
	switch {
	case c.unsure:
		return nil, c.denied.wait(ctx, c.s, err)
	case errors.Is(err, zk.ErrNodeExists) && failed == 2: // a breadcrumb that we did not know of
		o.clear = false
		return c.create(ctx, crumb, o)
	case errors.Is(err, zk.ErrNodeExists): // somebody was quicker, or the server that was read from has lost the lock
		return nil, c.denied.wait(ctx, c.s, err)
	case failed >= 0 && isCheck(ops[failed]): // Heed is about to tell
		return nil, c.denied.wait(ctx, c.s, errUnanswered)
	case err != nil:
		c.s.forget(c.paths.Service)
		return nil, fmt.Errorf("create the lock: %w", err)
	case len(results) != len(ops) || results[1].Stat == nil: // read it instead
		return nil, c.denied.wait(ctx, c.s, err)
	}
	c.denied = pacing{}
	// All of a transaction has one zxid: that of the folder's change is the lock's czxid.
	claim := c.claim(crumb, results[1].Stat.Mzxid, results[1].Stat.Version)
	if claim.Token < c.newest {
		return nil, c.torn()
	}
	c.newest = claim.Token
	claim.found = o.clear
	if !o.clear {
		err = c.readCrumb(ctx, claim)
		c.unsure = err != nil
	}
	if born(*results[1].Stat) != c.birth {
		return nil, c.rebirth(ctx, claim)
	}
	return claim, err
}

// ErrDeleted says that all of the service was deleted by hand since the candidate stood. Nobody makes it anew but who stands anew,
// and so learns of it.
var ErrDeleted = errors.New("the znodes of the service were deleted as a whole")

// rebirth gives a lock back that was taken in another folder than the one that the candidate stood with. P1: with the former folder
// went the breadcrumb of whoever was active, so a delay has to prove its death, and whoever stands anew waits for it.
func (c *Candidate) rebirth(ctx context.Context, claim *Claim) error {
	err := claim.Release(ctx)
	c.unsure = err != nil
	return errors.Join(ErrDeleted, err)
}

func (c *Candidate) claim(crumb BreadCrumb, token int64, number int32) *Claim {
	claim := &Claim{Token: token, Since: time.Now(), number: number, s: c.s, paths: c.paths, crumb: crumb, roll: newRoll()}
	for _, path := range []string{c.place, c.preference} {
		if path != "" {
			claim.stakes = append(claim.stakes, path)
		}
	}
	return claim
}

func (c *Candidate) readCrumb(ctx context.Context, claim *Claim) error {
	if err := claim.reread(ctx); err != nil {
		return fmt.Errorf("read the breadcrumb: %w", err)
	}
	return nil
}

// Order is the kind of election that it stands in.
func (c *Candidate) Order() Order { return c.order }

// Paths names the service's znodes.
func (c *Candidate) Paths() Paths { return c.paths }
