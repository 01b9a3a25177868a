package election

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"understudy/election/jute"
)

// ErrTorn says that ZooKeeper shows an impossible state: its servers disagree, or went back in time.
var ErrTorn = errors.New("ZooKeeper shows a lock of this session, but not its claim: somebody deleted claim-* by hand, " +
	"or its servers disagree about their data")

// ErrDeleted says that all znodes of the service were deleted by hand since the candidate was made. Only a new candidate recreates them,
// and so learns of it.
var ErrDeleted = errors.New("all znodes of the service were deleted")

// ErrOlder says that ZooKeeper has an older copy of the service's znodes
// than the candidate has seen. A new candidate learns what that means.
var ErrOlder = errors.New("ZooKeeper has an older copy of its data")

// acquisition is a candidate's way to the service's lock, over one or more attempts.
type acquisition struct {
	s     *Session
	paths Paths
	birth Birth // of the service's folder at the candidate's beginning
	saw   func(token int64)
	// outlasts tells whether the writer of a breadcrumb may have a lease by promises; nil: if the breadcrumb says that it asks for such.
	outlasts func(*BreadCrumb) bool

	setBacks int64 // how often the data was set back before the candidate's beginning
	// mayHoldOldLock says that a lock of the older copy may be ours. P1: its token may be smaller than one that is lost. P6: all others
	// wait for us.
	mayHoldOldLock bool

	newest      int64      // the greatest token that we have seen
	names       Names      // the names that the claim deletes
	lockEnd     lockEnd    // of the newest lock that we have seen
	mayHoldLock bool       // an attempt was not answered: the lock may be ours
	triedCrumb  BreadCrumb // of that attempt
	refusals    pacing     // of refused attempts although the lock looks free
	surrenders  pacing     // of attempts to give a lock up that was written beside
}

// inherit takes over an unanswered attempt of another candidate of the session.
func (t *acquisition) inherit(tried BreadCrumb) { t.mayHoldLock, t.triedCrumb = true, tried }

// readLock reads and watches lock and breadcrumb, so that no read is needed when time counts. It finds out whether the lock is ours.
func (t *acquisition) readLock(ctx context.Context) (lock, trail view, err error) {
	if t.mayHoldLock { // the unanswered request may not be seen yet
		if err := t.s.sync(ctx, t.paths.Dir()); err != nil {
			return lock, trail, err
		}
	}
	if trail, err = t.s.getW(ctx, t.paths.Crumb()); err != nil {
		return lock, trail, err
	}
	if lock, err = t.getLock(ctx); err != nil {
		return lock, trail, err
	}
	if lock.stat.EphemeralOwner != 0 { // else it was made by hand, or by a restore
		t.newest = max(t.newest, lock.stat.Czxid)
	}
	if t.s.sawRecord(trail) {
		t.saw(lock.stat.Czxid)
	}
	if err := t.noteNewest(ctx, trail.exists); err != nil {
		return lock, trail, err
	}
	t.mayHoldLock = lock.exists && lock.stat.EphemeralOwner == t.s.ID() // until it is adopted
	if lock.exists && !t.mayHoldLock {
		t.refusals = pacing{}
	}
	return lock, trail, nil
}

// noteNewest notes the newest claim. P1: where ZooKeeper comes back with an older copy of its data, this session may be in it, and go on.
// Then newer claims are gone, with the breadcrumbs of programs that may still run.
func (t *acquisition) noteNewest(ctx context.Context, crumbed bool) error {
	look, err := t.s.names(ctx, t.paths)
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return ErrDeleted
	case err != nil:
		return err
	case look.Folder.Mzxid < max(t.newest, t.names.Folder.Mzxid): // each claim writes to it
		return ErrOlder
	}
	if err := t.failIfSetBack(ctx); err != nil {
		return err
	}
	t.names = look
	if crumbed {
		t.names.Records = nil // the breadcrumb has it, and whoever deletes or overwrites that deletes it
	}
	return nil
}

// failIfSetBack fails if the data was set back since the candidate's beginning.
func (t *acquisition) failIfSetBack(ctx context.Context) error {
	setBacks, err := t.s.SetBacks(ctx)
	if err == nil && setBacks != t.setBacks {
		err = ErrOlder
	}
	return err
}

func (t *acquisition) getLock(ctx context.Context) (view, error) {
	began := time.Now()
	lock, err := t.s.getW(ctx, t.paths.Lock())
	if err == nil {
		t.lockEnd.note(lock, began, time.Now())
	}
	return lock, err
}

// The first requests of create's transaction, by which its results and its failure are found.
const (
	createLock   = iota
	changeFolder // fails if somebody has claimed, or made the folder anew
	createCrumb  // only where no breadcrumb was seen
)

// create makes the lock, and our breadcrumb with it when there is none. It deletes the name of the claim before, as we have last seen it,
// and so succeeds only if nobody has claimed since. For the same case without a name it checks the folder's version, which it raises: what
// that cannot tell, a folder that was made anew or an older copy of the data, is looked at afterwards.
func (t *acquisition) create(ctx context.Context, crumb BreadCrumb, o Opening, ownZnodes []string) (*Claim, error) {
	self := Lock{Node: crumb.Node, Host: crumb.Host, Pid: t.s.cfg.Node.Pid, Since: crumb.Since}
	t.s.locks.add(t.paths)
	if o.claims != nil && *o.claims != t.names.newest() {
		return nil, t.again(ctx, errUnanswered)
	}
	name, gone := t.paths.newClaim(), t.names.Claims
	ops := []any{
		&zk.CreateRequest{Path: t.paths.Lock(), Data: encode(self), Acl: t.s.acl, Flags: zk.FlagEphemeral},
		&zk.SetDataRequest{Path: t.paths.Dir(), Data: encode(self), Version: t.names.Folder.Version},
	}
	if o.clear {
		crumb.Name = rand.Text()
		ops = append(ops, &zk.CreateRequest{Path: t.paths.Crumb(), Data: encode(crumb), Acl: t.s.acl},
			&zk.CreateRequest{Path: t.paths.record(crumb.Name), Acl: t.s.acl})
		gone = slices.Concat(gone, t.names.Records)
	}
	ops = append(ops, &zk.CreateRequest{Path: name, Acl: t.s.acl})
	for _, path := range gone {
		ops = append(ops, remove(path))
	}
	if o.intents != nil {
		ops = append(ops, &zk.CheckVersionRequest{Path: t.paths.Control(), Version: o.intents.version})
	}
	results, failed, err := t.s.transact(InTurn(ctx), ops...)
	t.mayHoldLock, t.triedCrumb = unknown(err), crumb
	_, named := errors.AsType[jute.Code](err)
	switch {
	case t.mayHoldLock && named: // the server itself failed
		return nil, fmt.Errorf("create the lock: %w", err)
	case t.mayHoldLock:
		return nil, t.again(ctx, err)
	case errors.Is(err, zk.ErrNodeExists) && failed == createCrumb: // there is one that we did not know of
		o.clear = false
		return t.create(ctx, crumb, o, ownZnodes)
	case errors.Is(err, zk.ErrNodeExists): // another node was quicker, or the server that we read from has lost the lock
		return nil, t.again(ctx, err)
	case failed > createLock && (errors.Is(err, zk.ErrBadVersion) || errors.Is(err, zk.ErrNoNode)):
		// The next look, or the control's watch, shows why.
		return nil, t.again(ctx, errUnanswered)
	case err != nil:
		t.s.locks.drop(t.paths.Service)
		return nil, fmt.Errorf("create the lock: %w", err)
	case len(results) != len(ops) || results[changeFolder].Stat == nil: // read it instead
		return nil, t.again(ctx, err)
	}
	t.refusals = pacing{}
	// All of a transaction has one zxid: that of the folder's change is the lock's czxid.
	claim := t.claim(crumb, results[changeFolder].Stat.Mzxid, name, ownZnodes)
	if claim.Token < t.newest {
		return nil, t.endTornSession()
	}
	t.newest = claim.Token
	t.saw(claim.Token)
	claim.found, claim.record = o.clear, crumb.Name
	if !o.clear {
		err = claim.reread(ctx)
		t.mayHoldLock = err != nil
	}
	if born(*results[changeFolder].Stat) != t.birth {
		return nil, t.giveBackFor(ctx, claim, ErrDeleted)
	}
	if older := t.failIfSetBack(ctx); errors.Is(older, ErrOlder) { // so it did, and the last look is long ago
		return nil, t.giveBackFor(ctx, claim, ErrOlder)
	}
	return claim, wrap("read the breadcrumb", err)
}

// again pauses after an attempt that failed with err.
func (t *acquisition) again(ctx context.Context, err error) error {
	return t.refusals.wait(ctx, t.s.client, err)
}

func (t *acquisition) claim(crumb BreadCrumb, token int64, name string, ownZnodes []string) *Claim {
	return &Claim{
		Token: token, Since: time.Now(), Roll: newRoll(), czxid: token, name: name, lockEnd: t.lockEnd, s: t.s,
		paths: t.paths, crumb: crumb, ownZnodes: ownZnodes,
	}
}

// giveBackFor gives back a lock in another folder than the one of the candidate's beginning, or in an older copy of it. P1: the previous
// active's breadcrumb is gone, so only a delay can prove its death, and a new candidate waits that long.
func (t *acquisition) giveBackFor(ctx context.Context, claim *Claim, why error) error {
	err := claim.Release(ctx)
	t.mayHoldLock = err != nil
	return errors.Join(why, err)
}

func (t *acquisition) endTornSession() error {
	t.s.Expire(ErrTorn)
	return ErrTorn
}

// adopt makes a claim of a lock that is ours, whatever the breadcrumb says. It looks at the lock last: if that is still the same,
// nobody had claimed before the names and the breadcrumb were read.
//
// P1: so the name that its claim has made has to be there. By a bug (ZOOKEEPER-4712) a server may bring back a lock that was given
// back long ago. Its deletion could hit a later lock, which has the same path and version, so we end the session, and that lock for good
// with it. We do the same if hand-made changes of the service look like that.
func (t *acquisition) adopt(ctx context.Context, crumb BreadCrumb, lock view, ownZnodes []string) (*Claim, error) {
	look, err := outcome(ctx, t.s.client, func() (Names, error) { return t.s.names(ctx, t.paths) })
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", t.paths.Dir(), err)
	}
	name, err := outcome(ctx, t.s.client, func() (string, error) { return t.s.claimOf(ctx, look, lock.stat) })
	if err != nil {
		return nil, wrap("read the claim's name", err)
	}
	claim := t.claim(crumb, lock.stat.Czxid, name, ownZnodes)
	if err := claim.reread(ctx); err != nil {
		return nil, wrap("read the breadcrumb", err)
	}
	err = claim.verify(ctx)
	if errors.Is(err, ErrLost) {
		t.mayHoldLock = false
		return nil, t.again(ctx, err)
	}
	if err != nil {
		return nil, err
	}
	switch {
	case name == "" || t.newest > claim.Token:
		return nil, t.endTornSession()
	case born(look.Folder) != t.birth:
		t.mayHoldLock = false
		return nil, t.giveBackFor(ctx, claim, ErrDeleted)
	case claim.PreviousToken > claim.Token: // somebody has made the breadcrumb by hand
		return nil, t.giveUpLock(ctx, claim)
	}
	t.mayHoldLock = false
	return claim, nil
}

// giveUpLock gives up a lock if another client has written to the service by hand, and our breadcrumb with it: as after a lost race, Wait
// finds out what comes next. No program was started under that lock.
//
// P1: if the leader knows more claims than this server, the lock there is not ours. If it refuses again and again, they disagree.
func (t *acquisition) giveUpLock(ctx context.Context, claim *Claim) error {
	t.s.log.Warn("another client has written to the service's znodes by hand: taking its lock again",
		"service", t.paths.Service, "token", claim.Token)
	_, err := t.s.multi(ctx, claim.surrender()...)
	switch {
	case err == nil:
		t.mayHoldLock = false
		t.s.locks.drop(t.paths.Service)
	case errors.Is(err, zk.ErrBadVersion), errors.Is(err, zk.ErrNoNode):
		if !t.surrenders.passes(err) {
			return t.endTornSession()
		}
		return t.surrenders.wait(ctx, t.s.client, err)
	case !unknown(err):
		return fmt.Errorf("give the lock up: %w", err)
	}
	return t.again(ctx, err)
}

// giveBackIfOurs gives back a lock after an unanswered attempt, if it is ours.
func (t *acquisition) giveBackIfOurs(ctx context.Context, ownZnodes []string) error {
	for t.mayHoldLock {
		lock, err := outcome(ctx, t.s.client, func() (view, error) {
			if err := t.s.sync(ctx, t.paths.Dir()); err != nil { // the unanswered request may not be seen yet
				return view{}, err
			}
			return t.s.existsW(ctx, t.paths.Lock())
		})
		if err != nil {
			return wrap("read who holds the lock", err)
		}
		if !lock.exists || lock.stat.EphemeralOwner != t.s.ID() {
			t.mayHoldLock = false
			return nil
		}
		claim, err := t.adopt(ctx, t.triedCrumb, lock, ownZnodes)
		if (errors.Is(err, ErrDeleted) || errors.Is(err, ErrOlder)) && !t.mayHoldLock {
			return nil // the lock is given back
		}
		if err == nil && claim != nil {
			err = claim.Release(ctx)
			t.mayHoldLock = err != nil
		}
		if err != nil {
			return wrap("give a lock back", err)
		}
	}
	return nil
}
