package service

import (
	"context"
	"fmt"
	"time"

	"understudy/election"
	"understudy/supervisor/failsafe"
	"understudy/supervisor/service/role"
	"understudy/supervisor/wait"
)

// Session is the part of a session with ZooKeeper that a service needs.
type Session struct {
	*election.Session
	Epoch uint64 // the number of its lease with the guardians
	Gate  *failsafe.Gate
	Leave <-chan struct{} // closed when all services of the session must end
}

// hands are the actions of the role machine in one stay in a session: the steps before a candidacy, the candidacy, its term, the
// fencing in that, and the runs of the programs.
type hands struct {
	*stay
	*candidate
	*term
	*fence
	*runs
}

func newHands(ctx context.Context, v *Service, s Session) hands {
	t := &stay{v: v, s: s, done: ctx.Done(), patience: minPatience}
	t.c = &candidate{stay: t}
	t.term = &term{candidate: t.c}
	f := &fence{term: t.term}
	r := &runs{term: t.term, fence: f}
	t.term.fence, t.term.runs = f, r
	return hands{t, t.c, t.term, f, r}
}

// stay is a service's stay in one session.
type stay struct {
	v    *Service
	s    Session
	c    *candidate
	term *term
	done <-chan struct{} // closed when it must end

	trouble  error         // why the former candidate does not work
	patience time.Duration // before another one is tried
}

// Moved notes a step, and logs and shows it if the role changes.
func (t *stay) Moved(was, now role.State, e role.Event, err error) {
	v := t.v
	v.state = now
	if err != nil {
		v.log.Error("the term ends, because of an event that is impossible here", "error", err)
		if v.node.Broken != nil {
			v.node.Broken(fmt.Errorf("%s: %w", v.name, err))
		}
	}
	v.handover.offer(upgradeIn(now))
	if stands := now.Place.Stands(); stands != was.Place.Stands() {
		v.inbox.precheck.stand(stands)
	}
	from, to := was.Role(), now.Role()
	if from == to {
		return
	}
	why := role.Why(was, now, e)
	v.view.enter(to, why)
	facts := []any{"from", string(from), "to", string(to), "reason", string(why)}
	v.log.Info("role", append(facts, t.facts(now)...)...)
	v.view.say()
}

// facts are further facts of a step, for the log.
func (t *stay) facts(now role.State) []any {
	v := t.v
	switch to := now.Role(); {
	case to == election.RolePaused:
		return []any{"why", v.view.note}
	case to == election.RoleActive:
		return []any{"token", v.mem.story.token, "fenced", v.mem.story.fenced}
	case to == election.RoleFencing, to == election.RoleStopping, now.Place == role.Recording:
		return []any{"token", v.mem.story.token}
	}
	return nil
}

// EndOld waits until no process of a former session is alive on this machine.
func (t *stay) EndOld(ctx context.Context) role.Event {
	session, enough := linger(ctx, t.s.Leave, 0)
	defer enough()
	r := &remains{stay: t}
	return r.endAll(session, ctx)
}

// UndoOld undoes the effects that a former session or supervisor could not undo.
func (t *stay) UndoOld(ctx context.Context) role.Event {
	v := t.v
	v.unit.WaitUndone()
	v.unit.LoadDebts()
	v.unit.UndoAll(ctx)
	if v.Removed() || ctx.Err() != nil || wait.Closed(t.s.Leave) { // Leave is closed a moment before ctx ends
		return role.Event{Kind: role.StayOver}
	}
	if v.mem.first() {
		v.hooks.onStandby(ctx, "supervisor started")
	}
	return role.Event{Kind: role.Settled}
}

// Join makes this node a candidate.
func (t *stay) Join(ctx context.Context) role.Event {
	v := t.v
	joining := ctx
	if v.handover.carried != nil { // the programs are ended as in any other term, also when that must happen at once
		var enough context.CancelFunc
		joining, enough = linger(ctx, t.s.Leave, proofPatience)
		defer enough()
	}
	cand, birth, err := t.s.NewCandidate(joining, v.name, v.conf.order())
	switch {
	case err == nil:
		cand.Inherit(v.mem.inherit())
		t.c.stands(cand, birth)
		return role.Event{Kind: role.Joined, DataLost: v.mem.born(birth)}
	case v.handover.carried != nil && handing(ctx):
		return role.Event{Kind: role.HandAsked}
	case v.handover.carried != nil:
		t.term.drop(err)
	case ctx.Err() != nil:
		return role.Event{Kind: role.StayOver}
	}
	t.trouble = err
	return role.Event{Kind: role.JoinFailed}
}

// How long Retry waits.
const (
	minPatience = time.Second
	maxPatience = 15 * time.Second
)

// Retry waits before the service tries another candidate.
func (t *stay) Retry(ctx context.Context) role.Event {
	if ctx.Err() == nil {
		t.v.log.Error("cannot become a candidate, trying again", "error", t.trouble, "in", t.patience)
	}
	if !wait.For(ctx, t.patience) {
		return role.Event{Kind: role.StayOver}
	}
	t.patience = min(2*t.patience, maxPatience)
	return role.Event{Kind: role.Waited}
}

// failed is the event when a candidate does not work any more, or another node had its tree ended.
func (t *stay) failed(err error) role.Event {
	if wait.Closed(t.done) {
		return role.Event{Kind: role.StayOver}
	}
	t.trouble = err
	return role.Event{Kind: role.Trouble}
}

// linger returns a context that ends a while after leave is closed, and not with its parent.
func linger(ctx context.Context, leave <-chan struct{}, d time.Duration) (context.Context, context.CancelFunc) {
	ctx, end := context.WithCancel(context.WithoutCancel(ctx))
	go func() {
		select {
		case <-leave:
			wait.For(ctx, d)
			end()
		case <-ctx.Done():
		}
	}()
	return ctx, end
}
