package service

import (
	"context"
	"time"

	"understudy/supervisor/service/role"
	"understudy/supervisor/unit"
	"understudy/supervisor/wait"
)

// How long an attempt to prove a death may take.
const (
	proofPatience   = 5 * time.Second  // one attempt, before it is logged and repeated
	partingPatience = 30 * time.Second // all attempts of a supervisor that stops
	proofPause      = 10 * time.Millisecond
)

// Prove ends the tree: when it reports Proved, nothing is alive in it, and nothing can be started in it.
func (t *term) Prove(ctx context.Context) role.Event {
	v := t.v
	t.unwatch()
	t.runs.closeRun()
	v.history.ends(&t.entry, v.state.Cause.Why())
	e := t.prove(ctx)
	if e.Kind != role.Proved {
		return e // P2: keep the lock while a process may be alive
	}
	v.history.ended()
	if v.conf.Once && v.state.Cause == role.StopAsked && t.runs.first != nil {
		status := unit.ExitOf(t.runs.first)
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
		go func() { // ends with bounded: the other nodes must read soon that a delay proves nothing
			select {
			case <-c.s.Ended():
				wait.For(bounded, endFirst)
				cancel()
			case <-bounded.Done():
			}
		}()
		err := c.tree.End(bounded)
		if err != nil {
			wait.For(bounded, proofPause) // the attempt may have failed at once
		}
		cancel()
		if err == nil {
			v.local.undead.forget()
			v.view.wellness.proved()
			v.engagement.end()
			c.s.Gate.Leave(v.Term())
			return role.Event{Kind: role.Proved}
		}
		v.log.Error("the child's death is not proved, the lock is kept", "error", err)
		v.handover.offer(Stuck)
		c.testify(ctx, c.cand, idOf(c.tree), err)
		v.view.ails(unproved, v.local.undead.seen)
		if !wait.Closed(c.s.Ended()) && (!wait.Closed(c.s.Leave) || time.Now().Before(gaveUp)) {
			continue
		}
		v.local.undead.keep(c.tree, c.s.Epoch)
		return role.Event{Kind: role.Unproved}
	}
}

// Undo undoes the programs' effects. None of their processes is alive.
func (t *term) Undo(ctx context.Context) role.Event {
	v := t.v
	switch {
	case v.state.Then == role.Judge:
		v.unit.UndoAll(ctx)
	case wait.Closed(t.s.Ended()): // only this service's next stay waits for it
		v.unit.StartUndo(context.WithoutCancel(ctx))
	default: // the context may have ended
		v.unit.UndoAll(context.WithoutCancel(ctx))
	}
	return role.Event{Kind: role.Settled}
}

// How long Release waits after ZooKeeper has refused the release.
const (
	minRefusal = time.Second
	maxRefusal = 15 * time.Second
)

// Release gives the lock back. As long as ZooKeeper refuses, Release keeps the lock, tells the other nodes why, and tries again at growing
// intervals, until the session is over, or all services leave it; the lock ends with the session. With --once, the first refusal leaves
// the lock to the end of its session.
func (t *term) Release(ctx context.Context) role.Event {
	v := t.v
	trying, enough := linger(ctx, t.s.Leave, proofPatience)
	defer enough()
	for next := minRefusal; ; next = min(2*next, maxRefusal) {
		err := t.claim.Release(context.WithoutCancel(ctx)) // the session bounds the wait for an answer
		if err == nil {
			return role.Event{Kind: role.Released}
		}
		if t.s.Over() != nil || v.finished != nil || wait.Closed(trying.Done()) {
			v.log.Warn("cannot give the lock back, it ends with its session", "error", err)
			t.trouble = err
			t.tellStandby(ctx)
			return role.Event{Kind: role.NotReleased}
		}
		v.log.Error("the lock cannot be given back, and is kept until then", "error", err, "again in", next)
		v.handover.offer(Stuck)
		v.view.remark("the lock cannot be given back: " + err.Error())
		v.view.say()
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
	if v.state.Then == role.GiveUp {
		v.hooks.onGiveUp(ctx, string(v.state.Cause.Why()))
	}
	v.history.end(ctx, t.cand, &t.entry, v.conf.Moves, v.state.Cause.Why())
	t.tellStandby(ctx)
	return role.Event{Kind: role.Recorded}
}

// tellStandby runs on_standby.
func (t *term) tellStandby(ctx context.Context) {
	if v := t.v; t.lived {
		v.hooks.onStandby(ctx, string(v.state.Cause.Why()))
	}
}
