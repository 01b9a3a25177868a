package election

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
)

// Mode is the kind of election.
type Mode string

// Race: everybody watches the lock. Queue: each watches its predecessor only.
const (
	Race  Mode = "race"
	Queue Mode = "queue"
)

// Birth identifies a service's folder: if it changes, ZooKeeper has lost its data.
type Birth struct{ Czxid, Ctime int64 }

// Candidate waits for the lock of one service, within one session.
type Candidate struct {
	s           *Session
	paths       Paths
	mode        Mode
	acquisition acquisition
	queue       queue
	preference  preference

	Newest   int64             // the newest claim of the service, as the candidate found it
	SetBacks int64             // see Session.SetBacks
	Saw      func(token int64) // is told of each claim; nil: nobody is

	Held func() // is called before a wait for another node's lock, or its place in the queue; nil: nobody is

	Members *Members
	Control *ControlZnode
	Crumb   *Crumb
	History *History
}

// NewCandidate prepares to wait for a service's lock.
func (s *Session) NewCandidate(ctx context.Context, service string, mode Mode) (*Candidate, Birth, error) {
	p := Paths{Root: s.cfg.Root, Service: service}
	folders := []string{p.Dir(), p.Members(), p.Queue(), p.History(), p.Control(), p.Preferred()}
	err := s.ensure(ctx, folders)
	if errors.Is(err, zk.ErrNoNode) { // all services were deleted by hand
		err = s.ensure(ctx, append(append(parents(s.cfg.Root), ServicesDir(s.cfg.Root)), folders...))
	}
	if err != nil {
		return nil, Birth{}, err
	}
	v, err := outcome(ctx, s.client, func() (zk.Stat, error) { return s.getStat(ctx, p.Dir()) })
	if err != nil {
		return nil, Birth{}, fmt.Errorf("read %s: %w", p.Dir(), err)
	}
	setBacks, err := s.SetBacks(ctx)
	if err != nil {
		return nil, Birth{}, err
	}
	record, err := outcome(ctx, s.client, func() (view, error) { return s.get(ctx, p.Crumb()) })
	if err != nil {
		return nil, Birth{}, fmt.Errorf("read the breadcrumb: %w", err)
	}
	s.sawRecord(record)
	birth := born(v)
	c := &Candidate{
		s: s, paths: p, mode: mode,
		acquisition: acquisition{s: s, paths: p, birth: birth, setBacks: setBacks, mayHoldOldLock: setBacks > 0},
		Newest:      v.Mzxid, SetBacks: setBacks, preference: preference{s: s, dir: p.Preferred()},
		queue:   queue{s: s, dir: p.Queue(), mark: strings.TrimPrefix(SessionName(s.ID()), "0x"), left: mode != Queue},
		Members: &Members{s: s, dir: p.Members()}, Control: &ControlZnode{s, p, birth},
		Crumb: &Crumb{s, p}, History: &History{s, p.History()},
	}
	c.acquisition.saw = func(token int64) {
		if c.Saw != nil {
			c.Saw(token)
		}
	}
	return c, birth, nil
}

func born(folder zk.Stat) Birth { return Birth{folder.Czxid, folder.Ctime} }

// Outlasting has the candidate ask whether the writer of a breadcrumb may have a lease by promises: then its lock is left alone.
func (c *Candidate) Outlasting(may func(*BreadCrumb) bool) { c.acquisition.outlasts = may }

// Opening is an opportunity to take the lock.
type Opening struct {
	ours    *view // the lock, if it is ours already: the answer to its creation was lost
	clear   bool  // there is no breadcrumb
	intents *Intents
	claims  *string // the newest one when the copies were compared
}

// Ours reports that the lock is ours already.
func (o Opening) Ours() bool { return o.ours != nil }

// Under makes Take fail if the intents have changed since: nobody is promoted after the service was paused.
func (o Opening) Under(i Intents) Opening {
	o.intents = &i
	return o
}

// After makes Take fail if there was a claim since: what the copies told before says nothing any more.
func (o Opening) After(claims string) Opening {
	o.claims = &claims
	return o
}

// Wait returns when the lock may be free.
func (c *Candidate) Wait(ctx context.Context) (Opening, error) {
	return outcome(ctx, c.s.client, func() (Opening, error) { return c.opening(ctx) })
}

func (c *Candidate) opening(ctx context.Context) (Opening, error) {
	if err := c.Forsake(ctx); err != nil {
		return Opening{}, err
	}
	unsure := c.acquisition.mayHoldLock
	looking := ctx
	if !unsure { // P6: all others wait for a lock that may be ours
		looking = InTurn(ctx)
	}
	if c.mode == Queue && !unsure { // if the lock may be ours, the candidate ahead of us may be waiting for us
		if err := c.queue.reachHead(looking, c.held, c.acquisition.failIfSetBack); err != nil {
			return Opening{}, err
		}
	}
	if c.mode != Queue { // a previous candidate of this session may have left a place behind
		_ = c.Withdraw(ctx) // only other nodes wait for that, and we try again
	}
	lock, trail, err := c.acquisition.readLock(looking)
	switch {
	case err != nil:
		return Opening{}, err
	case c.acquisition.mayHoldLock:
		return Opening{ours: &lock}, nil
	case c.mode == Queue && unsure:
		return c.opening(ctx)
	case !lock.exists:
		return Opening{clear: !trail.exists}, nil
	}
	c.held()
	trail, err = c.wait(ctx, lock, trail)
	return Opening{clear: !trail.exists}, err
}

// Forsake gives back a lock that is ours in an older copy of ZooKeeper's
// data, if the data was set back. No process of the service is alive.
func (c *Candidate) Forsake(ctx context.Context) error {
	if !c.acquisition.mayHoldOldLock {
		return nil
	}
	c.acquisition.mayHoldLock = true
	if err := c.acquisition.giveBackIfOurs(ctx, c.ownZnodes()); err != nil {
		return err
	}
	c.acquisition.mayHoldOldLock = false
	return nil
}

func (c *Candidate) held() {
	if c.Held != nil {
		c.Held()
	}
}

// crumbFirst is how long the news of the breadcrumb's removal may come before that of the lock's: as a rule one transaction removes
// both.
const crumbFirst = 50 * time.Millisecond

// wait returns when the lock may be free, with the newest known breadcrumb.
func (c *Candidate) wait(ctx context.Context, lock, trail view) (view, error) {
	var again <-chan time.Time // when to read a breadcrumb that has changed
	held := c.acquisition.watchHolder(lock)
	defer held.leave()
	over := held.found()
	if held != nil { // it may have been watched before, as that of a place in the queue
		if err := c.acquisition.vacate(ctx, held, lock, trail); err != nil {
			return trail, err
		}
	}
	for {
		resumed := c.s.Resumed()
		select {
		case <-over:
			over = held.found()
			if again != nil { // whether the holder may outlast ZooKeeper is being read
				continue
			}
			if err := c.acquisition.vacate(ctx, held, lock, trail); err != nil {
				return trail, err
			}
		case ev := <-lock.changed:
			select { // the news of a breadcrumb's change before the lock's deletion came before it
			case seen := <-trail.changed:
				trail.exists = seen.Type != zk.EventNodeDeleted
			default:
			}
			if ev.Type == zk.EventNodeDeleted {
				c.acquisition.lockEnd.went(c.s.connected())
				return trail, nil
			}
			return trail, errUnanswered // another change: read again
		case seen := <-trail.changed:
			trail = view{exists: seen.Type != zk.EventNodeDeleted}
			again = time.After(crumbFirst) // do not read while the lock may be about to go
		case <-again:
			fresh, err := c.s.getW(ctx, c.paths.Crumb())
			if err != nil {
				return trail, err
			}
			trail, again = fresh, nil
		case <-resumed:
			return trail, errUnanswered
		case <-c.s.Ended():
			return trail, c.s.Over()
		case <-ctx.Done():
			return trail, context.Cause(ctx)
		}
	}
}

// Take takes the lock. With no breadcrumb left behind, ours is written in the same transaction, and the claim is complete;
// otherwise Previous is set. It returns nil if another node was quicker, or if that is unknown: then Wait finds out.
func (c *Candidate) Take(ctx context.Context, o Opening, crumb BreadCrumb) (*Claim, error) {
	me := c.s.cfg.Node
	crumb.Node, crumb.Host, crumb.Machine, crumb.Boot = me.Node, me.Host, me.Machine, me.Boot
	crumb.Session, crumb.LeaseMs, crumb.Beat = SessionName(c.s.ID()), c.s.LeaseLength().Milliseconds(), c.s.rests()
	crumb.Since = time.Now().UTC()
	if o.ours != nil {
		return c.acquisition.adopt(ctx, crumb, *o.ours, c.ownZnodes())
	}
	return c.acquisition.create(ctx, crumb, o, c.ownZnodes())
}

// ownZnodes are the znodes that we delete together with the lock.
func (c *Candidate) ownZnodes() (paths []string) {
	for _, path := range []string{c.queue.place, c.preference.path} {
		if path != "" {
			paths = append(paths, path)
		}
	}
	return paths
}

// MayHoldLock reports that the lock may be ours although no answer said so: Wait finds out.
func (c *Candidate) MayHoldLock() bool { return c.acquisition.mayHoldLock }

// Prefer tells the other nodes that this one is fit, and preferred with a priority; 0 withdraws that.
func (c *Candidate) Prefer(ctx context.Context, priority int) error {
	c.Advance(priority)
	return repeat(ctx, c.s.client, func() error { return c.preference.set(ctx, priority) })
}

// First is the priority of the node that an operator has chosen.
const First = 1 << 30

// Advance gives this node a place in the queue as with a priority, without announcing one.
func (c *Candidate) Advance(priority int) { c.queue.priority = priority }

// Withdraw leaves the queue: afterwards no znode of ours is in it, behind which others would wait.
func (c *Candidate) Withdraw(ctx context.Context) error {
	return wrap("leave the queue", c.queue.leave(ctx))
}

// Retreat ends the candidacy, and releases a lock that may be ours although no answer said so. No process of the service is alive.
func (c *Candidate) Retreat(ctx context.Context) error {
	if err := c.acquisition.giveBackIfOurs(ctx, c.ownZnodes()); err != nil {
		return err
	}
	return errors.Join(c.Withdraw(ctx), c.Prefer(ctx, 0))
}

// Leave deletes all znodes in which this candidate describes itself, and does what Retreat does.
func (c *Candidate) Leave(ctx context.Context) error {
	if err := c.Retreat(ctx); err != nil {
		return err
	}
	return wrap("leave", repeat(ctx, c.s.client, func() error { return c.s.delete(ctx, c.paths.Members()+"/"+c.s.cfg.Node.Node) }))
}

// Mode is the candidate's kind of election.
func (c *Candidate) Mode() Mode { return c.mode }

// Paths names the service's znodes.
func (c *Candidate) Paths() Paths { return c.paths }
