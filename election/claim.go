package election

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"
)

var (
	// ErrLost says that the lock is not ours any more.
	ErrLost = errors.New("the lock is lost")
	// ErrCrumbChanged says that the breadcrumb is not the one that we fenced.
	ErrCrumbChanged = errors.New("the breadcrumb has changed")
)

// Claim is a lock that we hold.
type Claim struct {
	Token int64     // of the activation: the czxid of the lock that it began with
	Since time.Time // when the lock was claimed

	// Previous is the node that the breadcrumb names, unless that is us: it must be fenced before Inscribe. PreviousToken is its token.
	Previous      *BreadCrumb
	PreviousToken int64

	Roll *Roll

	lockEnd lockEnd // of the lock before this one
	leased  bool    // the previous active's lease was not over at the claim, as far as this node had seen

	czxid      int64  // of the lock: the token, unless it was taken again
	gone       bool   // the lock is not ours: Release withdraws the breadcrumb alone, whatever lock there is by then
	unanswered bool   // an inscription was not answered
	name       string // of this claim: the path of its claim-<guid>, which the next claim deletes
	s          *Session
	paths      Paths
	crumb      BreadCrumb      // ours
	version    int32           // of the breadcrumb as we last read or wrote it
	found      bool            // there is a breadcrumb
	record     string          // its name
	ownZnodes  []string        // our znodes in the queue and among the preferred, deleted together with the lock
	silent     []any           // checks that the previous active has sent no heartbeat until the last Delay
	silentIn   <-chan struct{} // the connection in which that was seen; nil: it need not be silent
	stood      *time.Time      // when its last heartbeat was sent, by its own clock; nil: none was seen
	provedOf   int64           // the session whose lease is proved to be over
	provedOver time.Duration   // since when
	lock       <-chan zk.Event
	trail      <-chan zk.Event // of the breadcrumb
}

// Confirmed waits until the breadcrumb of the previous active is gone: that node, or an operator, says that its child is dead. It
// returns ErrCrumbChanged if another node must be fenced now, and an error if the lock is lost meanwhile.
func (c *Claim) Confirmed(ctx context.Context) error {
	previous := *c.Previous
	for {
		if err := c.s.await(ctx, c.lock, c.trail); err != nil {
			return err
		}
		if err := c.verify(ctx); err != nil {
			return err
		}
		if err := c.reread(ctx); err != nil {
			return err
		}
		if c.Previous == nil {
			return nil
		}
		// A token that the previous active adds late changes nothing. Any other change makes it another case: no delay proves the death of
		// a process that was seen alive, or undoes an effect, and an answer that was given before does not cover it.
		now := *c.Previous
		now.Token = previous.Token
		if !bytes.Equal(encode(now), encode(previous)) {
			return ErrCrumbChanged
		}
	}
}

// Delay is how long, from the claim, the previous active's child may live if nothing proves its death; at least grace. P1: it ends with
// that node's lease, as this one sees it, whatever has become of its session; so it grows with each sign of life. But within a lease
// whoever has heartbeats acknowledged has heard that the lock is gone, and acted. Only after its lease a node undoes effects: what is not
// undone in its time, its breadcrumb says.
func (c *Claim) Delay(ctx context.Context, grace time.Duration) (time.Duration, error) {
	claimed := c.s.cfg.Now() - time.Since(c.Since)
	lease := time.Duration(c.Previous.LeaseMs) * time.Millisecond
	dead := claimed + lease*12/5 // what it sends last, it sends a lease after the claim at most
	c.leased, c.silentIn, c.stood = true, nil, nil
	if id, err := sessionOf(c.Previous.Session); err == nil {
		over, err := c.over(ctx, id, lease)
		if err != nil {
			return 0, fmt.Errorf("read the heartbeats of %s: %w", c.Previous.Node, err)
		}
		if dead = min(dead, over); dead < over {
			c.silentIn = nil // it need not be silent
		}
		went := claimed // the lock
		if gone := c.lockEnd.gone; !gone.IsZero() {
			went -= c.Since.Sub(gone)
		}
		c.leased = over > went
	}
	if undoing := c.Previous.Undoing(); undoing > 0 {
		grace = max(grace, undoing+undoMargin)
	}
	return max(dead-claimed, 0) + grace, nil
}

// over is when the lease of the previous active, in this session, is over, as this node sees it. If it is already, that is proved at once:
// ZooKeeper may end the session while the grace delay lasts, and a beat that goes begins anew otherwise.
func (c *Claim) over(ctx context.Context, id int64, lease time.Duration) (time.Duration, error) {
	if since, ok := c.s.before.wasReplaced(id); ok {
		return since, nil
	}
	beat := c.s.beats.watch(beatOf{c.Previous.Node, id})
	defer beat.leave()
	if err := repeat(ctx, c.s.client, func() error { return beat.look(ctx) }); err != nil {
		return 0, err
	}
	still := beat.still()
	if c.provedOf == id && len(still.unmoved) == 0 {
		return c.provedOver, nil
	}
	over, now := still.since+OverAfter(lease), c.s.cfg.Now()
	c.silent, c.silentIn = still.unmoved, still.in
	if !still.sent.IsZero() {
		c.stood = utc(still.sent)
	}
	if over <= now {
		ok, err := c.Silent(ctx)
		if err != nil {
			return 0, err
		}
		if ok {
			c.provedOf, c.provedOver = id, over
		}
	}
	return over, nil
}

// Silent proves, once a Delay is over, that the previous active has sent no heartbeat since: P1. What a node has seen is what its server
// had by then. A write is ordered among the others', and no later loss of data takes back that the lease was over when it was answered. It
// reports false if there was one, or if that is not known: then ask Delay again.
func (c *Claim) Silent(ctx context.Context) (bool, error) {
	if c.silentIn == nil {
		return true, nil
	}
	failed, err := c.s.multi(ctx, slices.Concat(c.silent, []any{there(c.paths.Lock()), there(c.name)})...)
	switch {
	case err == nil:
		return c.s.Resumed() == c.silentIn, nil
	case unknown(err), failed >= 0 && failed < len(c.silent):
		return false, nil
	case refused(err):
		return false, fmt.Errorf("prove that the previous node is silent: %w", err)
	}
	if err := c.recheck(ctx); err != nil {
		return false, err
	}
	return false, nil
}

// Inscribe makes the breadcrumb name us, if it does not yet: P5. The transaction succeeds only while a lock exists that
// nobody has claimed since we did, which makes it ours, and while the breadcrumb is the one that we fenced.
func (c *Claim) Inscribe(ctx context.Context) error {
	if c.found && c.Previous == nil {
		return nil
	}
	for again := (pacing{}); ; {
		found, version, record, fenced := c.found, c.version, c.record, c.Previous != nil
		mine := c.crumb
		mine.Token, mine.Name = c.Token, rand.Text()
		ops, err := c.inscription(ctx, mine)
		if err == nil {
			_, err = c.s.multi(ctx, ops...)
		}
		switch {
		case err == nil && found:
			c.version++
		case err == nil:
			c.found, c.version = true, 0
		case refused(err):
			return fmt.Errorf("write the breadcrumb: %w", err)
		}
		if err == nil {
			c.crumb, c.record, c.Previous = mine, mine.Name, nil
			return nil
		}
		c.unanswered = c.unanswered || unknown(err)
		if err := again.wait(ctx, c.s.client, err); err != nil {
			return err
		}
		if err := c.recheck(ctx); err != nil {
			return err
		}
		switch {
		case c.found && c.Previous == nil:
			return nil
		case c.Previous != nil && (!fenced || c.version != version || c.record != record):
			return ErrCrumbChanged
		}
	}
}

// inscription writes our breadcrumb, with its name, over the one that was fenced. Where there is none, names that are left of breadcrumbs
// which were deleted by hand go. While we have the lock, nobody else writes one, so that no name is overlooked.
func (c *Claim) inscription(ctx context.Context, mine BreadCrumb) ([]any, error) {
	ops := []any{there(c.paths.Lock()), there(c.name)}
	var gone []string
	if c.found {
		ops = append(ops, &zk.SetDataRequest{Path: c.paths.Crumb(), Data: encode(mine), Version: c.version})
		if c.record != "" {
			gone = []string{c.paths.record(c.record)}
		}
	} else {
		ops = append(ops, &zk.CreateRequest{Path: c.paths.Crumb(), Data: encode(mine), Acl: c.s.acl})
		look, err := c.s.names(ctx, c.paths)
		if err != nil {
			return nil, err
		}
		gone = look.Records
	}
	for _, path := range gone {
		ops = append(ops, remove(path))
	}
	return append(ops, &zk.CreateRequest{Path: c.paths.record(mine.Name), Acl: c.s.acl}), nil
}

// Lease is the lease, as in the breadcrumb.
func (c *Claim) Lease() time.Duration { return time.Duration(c.crumb.LeaseMs) * time.Millisecond }

// reread repeats readCrumb until there is an answer.
func (c *Claim) reread(ctx context.Context) error {
	return repeat(ctx, c.s.client, func() error { return c.readCrumb(ctx) })
}

// readCrumb reads the breadcrumb, and watches it.
func (c *Claim) readCrumb(ctx context.Context) error {
	v, err := c.s.getW(ctx, c.paths.Crumb())
	if err != nil {
		return err
	}
	c.trail = v.changed
	c.found, c.version, c.record, c.Previous = v.exists, v.stat.Version, "", nil
	if !v.exists {
		return nil
	}
	crumb, err := ReadBreadCrumb(v.data)
	if err != nil {
		c.s.log.Warn("the breadcrumb cannot be read, so its writer is fenced as unknown", "path", c.paths.Crumb(), "error", err)
	}
	c.record = crumb.Name
	if crumb.LeaseMs == 0 {
		crumb.LeaseMs = c.s.Longest().Milliseconds() // its own is unknown: use the longest known one
	}
	if crumb.Session == c.crumb.Session && bytes.Equal(crumb.Tree, c.crumb.Tree) {
		c.crumb.Effects, c.crumb.Name = crumb.Effects, crumb.Name // others write effects: the next writing of ours keeps them
		return nil
	}
	c.Previous, c.PreviousToken = &crumb, crumb.Token
	if c.PreviousToken == 0 {
		c.PreviousToken = v.stat.Czxid
	}
	return nil
}

// verify reads the lock, and watches it: it must be the very lock that we claimed.
func (c *Claim) verify(ctx context.Context) error {
	v, err := outcome(ctx, c.s.client, func() (view, error) { return c.s.existsW(ctx, c.paths.Lock()) })
	if err != nil {
		return fmt.Errorf("read the lock: %w", err)
	}
	if !v.exists || v.stat.EphemeralOwner != c.s.ID() || v.stat.Czxid != c.czxid {
		c.gone = true
		return ErrLost
	}
	c.lock = v.changed
	return nil
}

// Watch signs the breadcrumb, and returns when the lock or the breadcrumb is not ours any more, or when ctx or the session
// ends. It writes a deleted breadcrumb again.
func (c *Claim) Watch(ctx context.Context) error {
	if err := c.writeToken(ctx); err != nil {
		return err
	}
	for again := (pacing{}); ; {
		if err := c.verify(ctx); err != nil {
			return err
		}
		if err := c.reread(ctx); err != nil {
			return fmt.Errorf("read the breadcrumb: %w", err)
		}
		if c.Previous != nil {
			return fmt.Errorf("%w: the record of the active node gives %s", ErrLost, c.Previous.Node)
		}
		if !c.found {
			c.s.log.Warn("the breadcrumb was deleted, writing it again", "path", c.paths.Crumb())
			if err := c.Inscribe(ctx); err != nil {
				return err
			}
			continue
		}
		if err := c.enroll(ctx, &again); err != nil {
			return err
		}
		if err := c.s.await(ctx, c.lock, c.trail, c.Roll.changed); err != nil {
			return err
		}
	}
}

// writeToken adds the token to a breadcrumb that was written together with the lock, when the token was not known yet.
func (c *Claim) writeToken(ctx context.Context) error {
	if c.crumb.Token == c.Token {
		return nil
	}
	c.crumb.Token = c.Token
	err := c.rewrite(ctx)
	if err != nil && c.recheck(ctx) == nil {
		err = c.rewrite(ctx)
	}
	if errors.Is(err, zk.ErrNoAuth) {
		return fmt.Errorf("write the breadcrumb: %w", err)
	}
	return nil // the next read shows other failures
}

// rewrite writes our breadcrumb over itself, however late it comes: another one may have the same version, but not its name.
func (c *Claim) rewrite(ctx context.Context) error {
	if !c.found || c.Previous != nil {
		return ErrCrumbChanged
	}
	ops := []any{there(c.name), &zk.SetDataRequest{Path: c.paths.Crumb(), Data: encode(c.crumb), Version: c.version}}
	if c.record != "" {
		ops = append(ops, there(c.paths.record(c.record)))
	}
	_, err := c.s.multi(ctx, ops...)
	if err == nil {
		c.version++
	}
	return err
}

// PreviousEnding bounds when the last program of the previous active died, by how its lock went. previous is what its breadcrumb said, if
// it left one. The last sign of life is a heartbeat, of which there are six in a lease. When its lock goes the lease is over: P3; or
// guardians ended it after a death.
func (c *Claim) PreviousEnding(previous *BreadCrumb) Ending {
	d := c.lockEnd
	if d.gone.IsZero() {
		d.gone = c.Since
	}
	switch {
	case previous == nil: // it was found dead at any time before
		return Ending{}
	case c.leased || d.token != c.PreviousToken: // its lock was deleted by hand, or its session closed, or nobody here has seen it go
		return Ending{}
	}
	end := Ending{of: d.token}
	if previous.Failsafe == nil { // else the program may have outlasted the lease
		end.Max = utc(d.gone)
	}
	if c.stood != nil && (end.Max == nil || c.stood.Before(*end.Max)) { // else the nodes' clocks disagree
		end.Min = c.stood
	}
	return end
}
