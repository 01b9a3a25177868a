package service

import (
	"context"
	"errors"
	"time"

	"understudy/supervisor/child"
	"understudy/supervisor/config"
	"understudy/supervisor/service/role"
	"understudy/supervisor/unit"
	"understudy/supervisor/wait"
)

// How long it is tried to prove a death.
const (
	proofPatience   = 5 * time.Second  // before it is logged and tried again
	partingPatience = 30 * time.Second // by a supervisor that is to stop
	proofPause      = 10 * time.Millisecond
)

// Clear kills what the programs left behind, and goes on until that is proved or the term has to end. They may start again in the same tree.
func (t *term) Clear(ctx context.Context) role.Event {
	v := t.v
	for {
		bounded, cancel := context.WithTimeout(ctx, proofPatience)
		err := t.tree.Kill(bounded)
		cancel()
		if err == nil {
			break
		}
		if ctx.Err() != nil {
			return t.over(ctx)
		}
		v.log.Error("what the child left behind does not die", "error", err)
		v.ails(unproved, unprovedDeath(err))
	}
	t.closeRun()
	if t.leaseOver() { // that is why it ended: not its own doing
		return role.Event{Kind: role.LeaseOver}
	}
	return role.Event{Kind: role.Proved}
}

// Judge asks the restart policy what follows a run that ended without the term's being over.
func (t *term) Judge(ctx context.Context) role.Event {
	if ctx.Err() != nil {
		return t.over(ctx)
	}
	v, why := t.v, t.why
	v.ails(t.afterwards(), why.Error())
	t.delay, t.held = 0, role.Again
	var ended *unit.Ended
	var unstarted *unit.StartError
	errors.As(why, &ended)
	errors.As(why, &unstarted)
	switch {
	case ended != nil && v.conf.Once:
		v.finished = &ended.Status
		return role.Event{Kind: role.RanOnce}
	case unstarted != nil && v.conf.Once:
		v.finished = &child.ExitStatus{Code: 127}
		return role.Event{Kind: role.RanOnce}
	case t.anew():
		return role.Event{Kind: role.Again}
	}
	hook := errors.Is(why, unit.ErrHook)
	ok := ended != nil && ended.Status.Code == 0
	v.mem.failure = why.Error()
	before := v.mem.restarts
	next := v.mem.restarts.ended(time.Now(), ok, unstarted == nil && !hook)
	if hook && !next.again {
		next.why = "on_active failed again and again"
	}
	over := role.Failed
	switch {
	case ok:
		over = role.Done
	case hook:
		over = role.HookFailed
	}
	if !next.again && v.inbox.control().Paused && v.conf.Restart.Policy != config.RestartNever && !ok { // nobody else would take it
		next = verdict{again: true, after: max(v.conf.Restart.MaxDelay, time.Second)}
		v.mem.restarts = before // it is given up when the pause ends, unless it has run well by then
		t.held = over
	}
	if next.again {
		v.log.Warn("starting the child again", "after", next.after)
		v.node.Observer.Restarted(v.name)
		t.delay = next.after
		return role.Event{Kind: role.Again}
	}
	v.giveUp(next.why)
	return role.Event{Kind: over}
}

// Prove ends the tree: nothing is alive in it, nor can be started in it, when it reports so.
func (t *term) Prove(ctx context.Context) role.Event {
	v := t.v
	t.unwatch()
	t.closeRun()
	v.mem.words = &lastWords{entry: t.entry, over: v.state.Cause.Why()}
	e := t.prove(ctx)
	if e.Kind != role.Proved {
		return e // P2: what may be alive keeps its lock
	}
	v.mem.words.end = time.Now().UTC()
	if v.conf.Once && v.state.Cause == role.StopAsked && t.first != nil {
		status := unit.ExitOf(t.first)
		v.finished = &status
	}
	return e
}

// prove kills the tree, and reports Proved only when it is known to be dead and nothing can be started in it any more. While the
// lease lasts the lock is kept, and it goes on trying.
func (c *candidate) prove(ctx context.Context) role.Event {
	v := c.v
	gaveUp := time.Now().Add(partingPatience)
	for {
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), proofPatience)
		go func() { // ends with bounded: others are to hear soon that no delay is a proof
			select {
			case <-c.s.Ended():
				wait.For(bounded, buryFirst)
				cancel()
			case <-bounded.Done():
			}
		}()
		err := c.tree.End(bounded)
		if err != nil {
			wait.For(bounded, proofPause) // where it failed at once
		}
		cancel()
		if err == nil {
			if v.undead.seen = ""; v.view.condition == unproved {
				v.view.condition, v.view.ill = working, ""
			}
			v.disengage()
			c.s.Gate.Leave(v)
			return role.Event{Kind: role.Proved}
		}
		v.log.Error("the child's death is not proved, the lock is kept", "error", err)
		v.stance.Store(stuck)
		v.testify(ctx, c.cand, idOf(c.tree), err)
		v.ails(unproved, v.undead.seen)
		if !wait.Closed(c.s.Ended()) && (!wait.Closed(c.s.Leave) || time.Now().Before(gaveUp)) {
			continue
		}
		v.undead.tree, v.undead.epoch = c.tree, c.s.Epoch
		return role.Event{Kind: role.Unproved}
	}
}

// Undo undoes what the programs did. Nothing of them is alive.
func (t *term) Undo(ctx context.Context) role.Event {
	v := t.v
	switch {
	case v.state.Then == role.Judge:
		v.unit.UndoAll(ctx)
	case wait.Closed(t.s.Ended()): // nobody waits for it but this service's next stay
		v.unit.UndoBeside(context.WithoutCancel(ctx))
	default: // the context may have ended
		v.unit.UndoAll(context.WithoutCancel(ctx))
	}
	return role.Event{Kind: role.Settled}
}

// How long it is waited before a lock is given back once more whose release ZooKeeper has refused.
const (
	minRefusal = time.Second
	maxRefusal = 15 * time.Second
)

// Release gives the lock back. As long as ZooKeeper refuses that, the lock is kept, the other nodes are told why, and it is tried
// ever more rarely: until the session is over, or all leave it, which then takes the lock with it. So it does at once where the
// command was to run once.
func (t *term) Release(ctx context.Context) role.Event {
	v := t.v
	trying, enough := linger(ctx, t.s.Leave, proofPatience)
	defer enough()
	for next := minRefusal; ; next = min(2*next, maxRefusal) {
		err := t.claim.Release(context.WithoutCancel(ctx)) // what is not answered is bounded by the session
		if err == nil {
			return role.Event{Kind: role.Released}
		}
		if t.s.Over() != nil || v.finished != nil || wait.Closed(trying.Done()) {
			v.log.Warn("the lock could not be given back, it goes with its session", "error", err)
			t.trouble = err
			t.tellStandby(ctx)
			return role.Event{Kind: role.NotReleased}
		}
		v.log.Error("the lock cannot be given back, and is kept until then", "error", err, "again in", next)
		v.stance.Store(stuck)
		v.view.note = "the lock cannot be given back: " + err.Error()
		v.say()
		again := time.NewTimer(next)
		select {
		case <-again.C:
		case <-t.s.Ended():
		case <-trying.Done():
		}
		again.Stop()
	}
}

// Record tells the hooks, and closes the term's entry in the history.
func (t *term) Record(ctx context.Context) role.Event {
	v := t.v
	if v.state.Then == role.Rest {
		v.unit.Beside(context.WithoutCancel(ctx), "on_give_up", v.conf.Hooks.OnGiveUp, v.told(string(v.state.Cause.Why())))
	}
	t.recordEnd(ctx)
	t.tellStandby(ctx)
	return role.Event{Kind: role.Recorded}
}

// tellStandby runs on_standby, beside what goes on.
func (t *term) tellStandby(ctx context.Context) {
	if v := t.v; t.lived {
		v.unit.Beside(context.WithoutCancel(ctx), "on_standby", v.conf.Hooks.OnStandby, v.told(string(v.state.Cause.Why())))
	}
}
