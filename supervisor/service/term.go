package service

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"understudy/election"
	"understudy/supervisor/child"
	"understudy/supervisor/service/role"
	"understudy/supervisor/unit"
	"understudy/supervisor/wait"
)

// term is from a lock that was taken to the proof that nothing is left of what ran under it.
type term struct {
	*candidate
	claim *election.Claim
	entry election.Activation // of the history
	story election.Proof      // how the former active was fenced, for the history
	until time.Duration       // before that, P1 forbids a start: it was promised, and nothing proves that it is not needed
	lived bool                // the former active was known to be dead

	lost   <-chan struct{} // closed when the lock is not ours any more; nil while it is not watched
	cease  func()          // ends what goes on beside
	beside sync.WaitGroup

	run   *unit.Run
	adopt *unit.Carried // what the next run goes on with
	first unit.Process
	why   error         // why the newest run ended
	delay time.Duration // before the next one
	held  role.Kind     // what follows in place of the next run once the service is not paused any more; Again: nothing
}

// begin is a new term.
func (t *term) begin(claim *election.Claim) {
	*t = term{candidate: t.candidate, claim: claim, entry: election.Activation{Token: claim.Token, Start: time.Now().UTC()}}
}

// ErrGuard ends all terms: the guardians have ended the lease, or are dead, and then a child could outlive us.
var ErrGuard = errors.New("guardians")

// over tells what ends a term whose context has ended.
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
		LeaseEnding: is(election.ErrLeaseEnding, election.ErrShortened, election.ErrTorn, ErrGuard),
		StayOver:    true, Handing: is(ErrHandover),
	}.Rank()
	return e
}

// leaseOver tells that nothing may run in this session any more.
func (t *term) leaseOver() bool {
	return wait.Closed(t.v.node.Guard().Over(t.s.Epoch)) || wait.Closed(t.s.Ended()) || t.v.node.Machine.Now() >= t.s.Lease.End()
}

// startFirst is what the programs' start is given, before anything else is asked of ZooKeeper.
const startFirst = 10 * time.Millisecond

// watch begins what goes on beside a term in which programs run, until cease. The lock is watched for as long as the programs are waited
// for: one that is asked to stop may take its time.
func (t *term) watch(ctx context.Context) {
	v := t.v
	watching, unwatch := context.WithCancel(context.WithoutCancel(ctx))
	ctx, enough := context.WithCancel(ctx)
	lost := make(chan struct{})
	t.lost = lost
	t.beside.Go(func() {
		wait.For(watching, startFirst) // what is missed meanwhile is seen in the first look
		err := t.claim.Watch(watching)
		if watching.Err() != nil {
			return
		}
		close(lost)
		t.end(fmt.Errorf("%w: %w", election.ErrLost, err))
		v.cut(context.WithoutCancel(ctx), t.cand, t.tree)
	})
	if v.conf.failsafe() {
		t.beside.Go(func() { t.s.Gate.Count(ctx, v.name, t.claim, t.cand.Members.Watch) })
	}
	moves := v.conf.Moves
	t.beside.Go(func() { t.recordBegin(ctx, moves) })
	t.cease = func() {
		enough()
		unwatch()
		t.beside.Wait()
	}
}

// unwatch ends what goes on beside the term.
func (t *term) unwatch() {
	if t.cease != nil {
		t.cease()
		t.cease = nil
	}
}

// cut ends a tree at once, whatever a check, a hook or an undo is about in it. P1: another node may be counting its grace
// delay. The proof is the term's. Without a candidate nothing is said in the breadcrumb.
func (v *Service) cut(ctx context.Context, cand *election.Candidate, tree unit.Tree) {
	for _, patience := range []time.Duration{buryFirst, proofPatience} {
		bounded, cancel := context.WithTimeout(ctx, patience)
		err := tree.End(bounded)
		cancel()
		if err == nil {
			return
		}
		v.log.Debug("not proved dead at once", "service", v.name, "error", err)
		v.record(ctx, cand, idOf(tree), err) // P5: whoever takes over is to hear of it before its delay is over
	}
}

// Arm passes the session's gate, and has the watchdog armed.
func (t *term) Arm(ctx context.Context) role.Event {
	t.lived = true
	if !t.s.Gate.Enter(ctx, t.v, t.claim) {
		return t.over(ctx)
	}
	if e := t.arm(ctx, t.s.Timeout()); e.Kind != role.Armed {
		return e
	}
	t.entry.Fenced = t.story
	t.watch(ctx)
	return role.Event{Kind: role.Armed}
}

// Resume goes on with a term that was handed over. P5 was kept by its beginning; all else is as in any term.
func (t *term) Resume(ctx context.Context) role.Event {
	v, c := t.v, t.v.carried
	claim, err := t.cand.Resume(c.Claim)
	switch {
	case err != nil:
		t.drop(fmt.Errorf("go on with the term: %w", err))
		return role.Event{Kind: role.CannotResume}
	case handing(ctx):
		return role.Event{Kind: role.HandAsked}
	}
	t.begin(claim)
	t.entry, t.adopt, t.lived = c.entry(), c.Run, true
	if !t.s.Gate.Enter(ctx, v, claim) {
		e := t.over(ctx)
		if e.Kind != role.HandAsked { // else the next image goes on with it
			v.carried = nil
			t.adopt.Discard()
		}
		return e
	}
	v.carried = nil
	t.watch(ctx)
	return role.Event{Kind: role.Resumed}
}

// drop is for a term that was handed over and cannot go on: it is to be ended. The session ends with it. P1: nobody watches its lock.
func (t *term) drop(why error) {
	v, c := t.v, t.v.carried
	t.s.Stop(why)
	v.carried = nil
	t.begin(&election.Claim{})
	t.entry, t.tree = c.entry(), c.tree
	c.Run.Discard()
	v.log.Error("the term cannot go on, ending the child", "service", v.name, "error", why)
}

// mayStart is asked before each start. P1: whatever the machine says.
func (t *term) mayStart() error {
	if t.until > 0 && t.v.node.Machine.Now() < t.until {
		return errPromised
	}
	return nil
}

// errPromised says that a child must not be started yet.
var errPromised = errors.New("this node has promised not to start it yet")

// Ends and killers for the session's gate.

// End asks for the end of the candidacy or term that the newest tree is for, and returns at once. It is safe.
func (v *Service) End(why error) {
	if one := v.trees.newest(); one != nil {
		one.end(why)
	}
}

// Killer looks up what runs now, and returns what kills that; nil when there is nothing. It is safe.
func (v *Service) Killer() func(context.Context) {
	one := v.trees.newest()
	if one == nil {
		return nil
	}
	return func(ctx context.Context) { v.cut(ctx, nil, one.tree) }
}

// engage says that the service may be started here: nothing of it is promised to others from now on.
func (v *Service) engage() {
	v.mem.engaged = true
	v.node.Promises.Engage(v.name)
}

func (v *Service) disengage() {
	if v.mem.engaged {
		v.mem.engaged = false
		v.node.Promises.Disengage(v.name)
	}
}

// arm has the machine reset unless the tree is proved dead soon after its lease's end.
func (t *term) arm(ctx context.Context, session time.Duration) role.Event {
	v := t.v
	w := v.node.Watchdog
	if w == nil {
		return role.Event{Kind: role.Armed}
	}
	dog, err := w.of(session)
	if err == nil {
		err = t.tree.Arm(ctx, dog)
	}
	switch {
	case err == nil:
		return role.Event{Kind: role.Armed}
	case ctx.Err() != nil:
		return t.over(ctx)
	case errors.Is(err, child.ErrLeaseEnded), errors.Is(err, child.ErrGuardiansLost):
		return role.Event{Kind: role.LeaseOver}
	case w.Required:
		v.log.Error("the watchdog, which is required, cannot be armed: nothing is started", "service", v.name, "error", err)
		v.inbox.tell(func() { v.inbox.tamed = fitness{true, err.Error()} })
		return role.Event{Kind: role.Unarmed}
	}
	v.log.Warn("no watchdog: a child that cannot be killed outlives its lease", "service", v.name, "error", err)
	return role.Event{Kind: role.Armed}
}
