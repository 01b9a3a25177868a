package service

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"understudy/election"
	"understudy/supervisor/child"
	"understudy/supervisor/config"
	"understudy/supervisor/service/role"
	"understudy/supervisor/wait"
)

// term lasts from a claim to the proof that no process is left that ran under it.
type term struct {
	*candidacy // whose term it is
	claim      *election.Claim
	entry      entry // of the history
	lived      bool  // fencing has succeeded: from here on programs may have run
	plain      bool  // there was no record: nobody is to be fenced

	listed election.Effects // in the breadcrumb
	until  time.Duration    // P1: a promise forbids a start before that, unless a proof has made it needless

	run       run
	promotion promotion

	lost    <-chan struct{} // closed when the lock is not ours any more; nil while it is not watched
	cease   func()          // ends the helpers
	helpers sync.WaitGroup
}

// beginTerm begins with a claim whose breadcrumb lists effects.
func (t *stay) beginTerm(claim *election.Claim, listed election.Effects) {
	t.v.mem.unstarted = false
	t.term = term{candidacy: &t.candidacy, claim: claim, entry: newEntry(claim.Token), listed: listed, plain: claim.Previous == nil}
}

// engage notes that the service may be started here. From then on this node promises no other node not to start it.
func (v *Service) engage() {
	v.engaged = true
	v.node.Promises.Engage(v.name)
	v.node.Spread.engage(v.name, v.conf.Spread)
}

func (v *Service) disengage() {
	if v.engaged {
		v.engaged = false
		v.node.Promises.Disengage(v.name)
		v.node.Spread.disengage(v.name)
	}
}

// ErrGuard ends all terms: the guardians have ended the lease, or are dead, and then a child could outlive us.
var ErrGuard = errors.New("its guardians ended, or cannot be started (is the number of processes limited?)")

// over returns the cause that ends a term whose context has ended.
func (t *term) over(ctx context.Context) role.Event {
	cause := context.Cause(ctx)
	is := func(errs ...error) bool {
		for _, err := range errs {
			if errors.Is(cause, err) {
				return true
			}
		}
		return false
	}
	e, _ := role.Ends{
		LockLost: wait.Closed(t.lost) || is(election.ErrLost), Expired: is(election.ErrExpired),
		LeaseEnding: is(election.ErrLeaseEnding, election.ErrTorn, election.ErrUnresolved, ErrGuard),
		StayOver:    true, Handing: is(ErrHandover),
	}.Rank()
	return e
}

// leaseOver reports that no program may run in this session any more.
func (t *term) leaseOver() bool {
	return wait.Closed(t.v.node.Guard().Over(t.s.Epoch)) || wait.Closed(t.s.Ended()) || t.v.node.Machine.Now() >= t.s.Lease.End()
}

// startFirst is how long the helpers ask ZooKeeper nothing, so that the programs start first.
const startFirst = 10 * time.Millisecond

// watch starts the goroutines that help a term in which programs run, until cease. The lock is watched until the programs have ended: a
// program that is asked to stop may take its time.
func (t *term) watch(ctx context.Context) {
	v := t.v
	watching, unwatch := context.WithCancel(context.WithoutCancel(ctx))
	ctx, enough := context.WithCancel(ctx)
	lost := make(chan struct{})
	t.lost = lost
	t.helpers.Go(func() {
		wait.For(watching, startFirst) // the first look sees changes of that time
		err := t.claim.Watch(watching)
		if watching.Err() != nil || errors.Is(err, election.ErrExpired) && !errors.Is(err, election.ErrLost) && t.outlasts() > 0 {
			return
		}
		close(lost)
		t.end(fmt.Errorf("%w: %w", election.ErrLost, err))
		v.breadcrumb.killNow(context.WithoutCancel(ctx), t.cand, t.tree)
	})
	if v.conf.failsafe() {
		t.helpers.Go(func() { t.s.Gate.Count(ctx, v.name, t.claim, t.cand.Members.Watch) })
	}
	moves := v.conf.Moves
	t.helpers.Go(func() { v.history.recordStart(ctx, t.cand, &t.entry, moves) })
	t.cease = func() {
		enough()
		unwatch()
		t.helpers.Wait()
	}
}

// unwatch ends the term's helpers.
func (t *term) unwatch() {
	if t.cease != nil {
		t.cease()
		t.cease = nil
	}
}

// Arm passes the session's gate, and arms the watchdog.
func (t *stay) Arm(ctx context.Context) role.Event {
	t.term.lived = true
	if !t.s.Gate.Enter(ctx, t.v.Term(), t.term.claim) {
		return t.term.over(ctx)
	}
	if e := t.term.promotion.compareAgain(ctx, &t.term); e.Kind != role.Armed {
		return e
	}
	if e := t.term.promotion.takeCopy(ctx, &t.term); e.Kind != role.Armed {
		return e
	}
	if e := t.term.arm(ctx, t.s.LeaseLength()); e.Kind != role.Armed {
		return e
	}
	t.term.entry.noteStart()
	t.term.watch(ctx)
	return role.Event{Kind: role.Armed}
}

// Resume continues a term that was handed over. The previous image has kept P5.
func (t *stay) Resume(ctx context.Context) role.Event {
	v, c := t.v, t.v.carried
	if c.until > 0 {
		return t.reclaim(ctx)
	}
	claim, err := t.candidacy.cand.Resume(c.Claim)
	switch {
	case err != nil:
		t.drop(fmt.Errorf("continue the activation: %w", err))
		return role.Event{Kind: role.CannotResume}
	case handing(ctx):
		return role.Event{Kind: role.HandAsked}
	}
	t.goesOn(claim, c)
	if c.promoteTree != nil {
		v.trees.newest().with(c.promoteTree)
	}
	t.term.lived, t.term.run.adopt = true, c.Run
	if !t.s.Gate.Enter(ctx, v.Term(), t.term.claim) {
		e := t.term.over(ctx)
		if e.Kind != role.HandAsked { // else the next image continues it
			v.carried = nil
			c.Run.Discard()
		}
		return e
	}
	v.carried = nil
	t.term.watch(ctx)
	return role.Event{Kind: role.Resumed}
}

// drop ends a term that was handed over and cannot go on. The session ends with it. P1: nobody watches its lock.
func (t *stay) drop(why error) {
	t.s.Stop(why)
	v, c := t.v, t.v.carried
	v.carried = nil
	t.goesOn(&election.Claim{}, c)
	t.candidacy.tree = c.tree
	c.Run.Discard()
	v.log.Error("this activation cannot continue, stopping the program", "error", why)
}

// arm makes the watchdog reset the machine unless the tree is proved dead soon after its lease's end.
func (t *term) arm(ctx context.Context, session time.Duration) role.Event {
	v := t.v
	w := v.node.Watchdog
	if w == nil {
		return role.Event{Kind: role.Armed}
	}
	device, err := deviceIn(session, w)
	if err == nil {
		err = t.tree.Arm(ctx, device)
	}
	switch {
	case err == nil:
		return role.Event{Kind: role.Armed}
	case ctx.Err() != nil:
		return t.over(ctx)
	case errors.Is(err, child.ErrLeaseEnded), errors.Is(err, child.ErrGuardiansLost):
		return role.Event{Kind: role.LeaseOver}
	case w.Mode == config.WatchdogRequired:
		v.log.Error("the watchdog, which is required, cannot be armed: nothing is started", "error", err)
		v.inbox.watchdog.found.write(fitness{true, err.Error()})
		return role.Event{Kind: role.Unarmed}
	}
	v.log.Warn("no watchdog: a program that cannot be killed outlives its lease", "error", err)
	return role.Event{Kind: role.Armed}
}
