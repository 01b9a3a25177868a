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
	Moved func()          // is called when a tree has left the lease of a previous session
}

// stay is a service's stay in one session. Its methods are the actions of the role machine; the parts hold what lasts less long.
type stay struct {
	v    *Service
	s    Session
	done <-chan struct{} // closed when it must end

	trouble  error         // why the previous candidate does not work
	patience time.Duration // before another one is tried

	candidacy candidacy
	term      term
}

func newStay(ctx context.Context, v *Service, s Session) *stay {
	t := &stay{v: v, s: s, done: ctx.Done(), patience: minPatience, candidacy: candidacy{v: v, s: s}}
	t.term.candidacy = &t.candidacy
	return t
}

// Moved notes a step, and logs and shows it if the role changes.
func (t *stay) Moved(was, now role.State, e role.Event, err error) {
	v := t.v
	v.step.Store(&step{}) // what follows waits for nobody
	defer func() { v.step.Store(&step{atMost: t.bound(now.Place)}) }()
	v.state = now
	v.conf.Wait.moved(now.Role())
	if err != nil {
		v.log.Error("internal error (please report): an unexpected event, so the service is stopped", "error", err)
		if v.node.Broken != nil {
			v.node.Broken(fmt.Errorf("%s: %w", v.name, err))
		}
	}
	v.offer(upgradeIn(now))
	if stands := now.Place.Stands(); stands != was.Place.Stands() {
		v.inbox.precheck.stand(stands)
	}
	v.copy.stand(now.Place.Stands() && now.Place != role.Blocked)
	from, to := t.shown(was), t.shown(now)
	if from == to {
		return
	}
	why := role.Why(was, now, e)
	v.view.enter(to, why)
	facts := []any{"from", string(from), "to", string(to), "reason", string(why)}
	v.log.Info(MomentRole, append(facts, t.facts(now)...)...)
	v.view.announce()
}

// shown is the role that others see. Where there is nobody to fence, nobody reads that somebody is fenced.
func (t *stay) shown(s role.State) election.Role {
	if r := s.Role(); r != election.RoleFencing || !t.term.plain {
		return r
	}
	return election.RoleClaiming
}

// facts are further facts of a step, for the log.
func (t *stay) facts(now role.State) []any {
	v := t.v
	switch to := t.shown(now); {
	case to == election.RolePaused:
		return []any{"why", v.view.note}
	case to == election.RoleActive:
		fenced := v.mem.lastTerm.fenced
		if fenced == string(election.NoBreadcrumb) {
			fenced = "not needed"
		}
		return []any{"token", v.mem.lastTerm.token, "fenced", fenced}
	case to == election.RoleFencing, to == election.RoleStopping, now.Place == role.Recording:
		return []any{"token", v.mem.lastTerm.token}
	}
	return nil
}

// EndOld waits until no process of a previous session is alive on this machine.
func (t *stay) EndOld(ctx context.Context) role.Event {
	session, enough := linger(ctx, t.s.Leave, 0)
	defer enough()
	left := leftovers{v: t.v, s: t.s}
	return left.endLeftovers(session, ctx)
}

// UndoOld undoes the effects that a previous session or supervisor could not undo.
func (t *stay) UndoOld(ctx context.Context) role.Event {
	v := t.v
	v.unit.StopUndo()
	v.unit.LoadUndos()
	left := leftovers{v: v, s: t.s}
	done := left.undo(ctx)
	if !done && !handing(ctx) { // the next stay ends that
		v.unit.StartUndo(context.WithoutCancel(ctx))
	}
	if !done || v.Removed() || ctx.Err() != nil || wait.Closed(t.s.Leave) { // Leave is closed a moment before ctx ends
		return role.Event{Kind: role.StayOver}
	}
	if !v.mem.begun {
		v.mem.begun = true
		if v.node.Memory != nil {
			v.mem.remember(v.node.Memory.Load(v.name))
		}
		v.runHook(ctx, "on_standby", v.conf.Hooks.OnStandby, "supervisor started")
	}
	return role.Event{Kind: role.Undone}
}

// Join makes this node a candidate.
func (t *stay) Join(ctx context.Context) role.Event {
	v := t.v
	v.copy.begin()
	joining := election.InTurn(ctx)
	// P1: until then nobody watches its lock. And the programs are ended as in any other term, also when that must happen at once.
	if v.carried != nil {
		var enough context.CancelFunc
		joining, enough = linger(ctx, t.s.Leave, proofPatience)
		defer enough()
	}
	cand, birth, err := t.s.NewCandidate(joining, v.name, v.conf.order())
	switch {
	case err == nil:
		cand.Inherit(v.mem.place)
		v.mem.place = election.CarriedCandidate{}
		t.candidacy = candidacy{v: v, s: t.s, cand: cand, birth: birth}
		if v.carried != nil {
			t.candidacy.tree = v.carried.tree
		}
		cand.Held = v.conf.Wait.tried
		cand.Outlasting(v.mayOutlast)
		cand.Saw = func(token int64) { v.mem.saw(token, t.s.Newest()) }
		lost := v.mem.lost(birth, cand.Newest, t.s.Newest(), cand.SetBacks)
		if !lost { // it may be in a queue for long, and look at no lock
			v.mem.saw(cand.Newest, 0)
		}
		return role.Event{Kind: role.Joined, DataLost: lost}
	case v.carried != nil && handing(ctx):
		return role.Event{Kind: role.HandAsked}
	case v.carried != nil:
		t.drop(err)
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
		t.v.log.Error("cannot stand for the service, trying again", "error", election.Explained(t.trouble), "in", t.patience)
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
