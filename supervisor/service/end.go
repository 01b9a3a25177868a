package service

import (
	"context"
	"errors"
	"time"

	"understudy/election"
	"understudy/supervisor/config"
	"understudy/supervisor/service/role"
	"understudy/supervisor/unit"
	"understudy/supervisor/wait"
)

// How long an attempt to prove a death may take.
const (
	proofPatience = 5 * time.Second  // one attempt, before it is logged and repeated
	stopPatience  = 30 * time.Second // all attempts of a supervisor that stops
	proofPause    = 10 * time.Millisecond
)

// Prove ends the tree: when it reports Proved, nothing is alive in it, and nothing can be started in it.
func (t *stay) Prove(ctx context.Context) role.Event {
	v := t.v
	t.term.unwatch()
	t.term.closeRun()
	v.history.noteEnd(&t.term.entry, t.term.endReason())
	switch {
	case t.term.promotion.copyNotTaken: // the breadcrumb may name the tree until Release: who fences it ends a follower
		t.term.noteDead()
	case !t.term.promotion.returnCopy(ctx, &t.term):
		t.term.promotion.blockStarts(ctx, &t.term)
		if e := t.term.killUntilProved(ctx); e.Kind != role.Proved {
			return e // P2: keep the lock while a process may be alive
		}
		if !v.Removed() { // else it would come back beside what its namesake starts
			v.copy.free()
		}
	}
	v.history.noteProved(&t.term.entry)
	if v.finished != nil {
		v.history.unwritten.entry.Exit = unit.Describe(*v.finished)
	}
	if v.conf.Once && v.state.Cause == role.StopAsked && t.term.run.first != nil {
		status := unit.ExitOf(t.term.run.first)
		v.finished = &status
	}
	return role.Event{Kind: role.Proved}
}

// endReason is why the term ends, as the history has it.
func (t *term) endReason() election.Reason {
	why := t.v.state.Cause.Why()
	seen, unreached := errors.AsType[unreachable](t.run.why)
	ended, exited := errors.AsType[*unit.Ended](t.run.why)
	switch {
	case t.v.state.Cause == role.NotReachable && unreached:
		why += election.Reason("; " + seen.who)
	case why == election.ChildFailed && exited && ended.Status.OutOfMemory:
		why = election.OutOfMemory
	}
	return why
}

// killUntilProved kills the tree, and reports Proved only when it is known to be dead and nothing can be started in it any more. While the
// lease lasts the lock is kept, and it goes on trying.
func (t *term) killUntilProved(ctx context.Context) role.Event {
	v, ended := t.v, t.s.Ended() // a goroutine may see it after the term
	gaveUp := time.Now().Add(stopPatience)
	for {
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), proofPatience)
		go func() { // ends with bounded: the other nodes must read soon that a delay proves nothing
			select {
			case <-ended:
				wait.For(bounded, endFirst)
				cancel()
			case <-bounded.Done():
			}
		}()
		err := errors.Join(t.promotion.endPromoteTree(bounded), t.tree.End(bounded))
		if err != nil {
			wait.For(bounded, proofPause) // the attempt may have failed at once
		}
		cancel()
		if err == nil {
			t.noteDead()
			return role.Event{Kind: role.Proved}
		}
		v.log.Error("the program is not proved dead, and the lock is kept", "error", err)
		v.offer(Stuck)
		v.reportAlive(ctx, t.cand, idOf(t.tree), err)
		v.view.showCondition(unproved, v.unprovedTree.seen)
		if !wait.Closed(t.s.Ended()) && (!wait.Closed(t.s.Leave) || time.Now().Before(gaveUp)) {
			continue
		}
		v.unprovedTree.tree, v.unprovedTree.promoteTree, v.unprovedTree.epoch = t.tree, t.promotion.promoteTree, t.s.Epoch
		return role.Event{Kind: role.Unproved}
	}
}

// noteDead notes that no program of the term runs any more.
func (c *candidacy) noteDead() {
	v := c.v
	v.unprovedTree.seen = ""
	v.view.wellness.proved()
	v.disengage()
	c.s.Gate.Leave(v.Term())
}

// Undo undoes the programs' effects. None of their processes is alive. P2: what is not undone keeps the lock as long as there is a session,
// and the breadcrumb after that.
func (t *stay) Undo(ctx context.Context) role.Event {
	v := t.v
	if v.state.Then == role.Judge {
		switch err := v.unit.Undo(ctx); {
		case err == nil:
			return role.Event{Kind: role.Undone}
		case ctx.Err() != nil:
			return t.term.over(ctx)
		}
		return role.Event{Kind: role.NotUndone}
	}
	trying, enough := context.WithCancel(context.WithoutCancel(ctx))
	defer enough()
	t.term.helpers.Go(func() {
		select {
		case <-t.s.Ended():
		case <-v.node.Hurry:
		case <-trying.Done():
		}
		enough()
	})
	report := func() {
		v.offer(NotUndone)
		v.breadcrumb.noteNotUndone(ctx, t.candidacy.cand, idOf(t.candidacy.tree), v.unit.PendingEffects())
		v.view.announce()
	}
	undone := v.unit.UndoAll(trying, unit.Leaving{Asked: t.s.Leave, Within: stopPatience}, report)
	enough()
	t.term.helpers.Wait()
	t.candidacy.tree.ReportUndone(undone)
	if undone {
		return role.Event{Kind: role.Undone}
	}
	if left := v.unit.Left(); len(left) > 0 {
		report()
		v.log.Warn("a oneshot is not undone: the lock ends with its session, and the record of the active node stays", "not undone", left)
	}
	// P1: other nodes take a delay for proof once the session is over. As long as it lasts, nobody would tell them of a success after this
	// supervisor has stopped: the next one undoes it.
	if wait.Closed(t.s.Ended()) || !wait.Closed(t.s.Leave) {
		v.unit.StartUndo(context.WithoutCancel(ctx)) // only this service's next stay waits for it
	}
	t.term.runStandbyHook(ctx)
	return role.Event{Kind: role.NotUndone}
}

// How long Release waits after ZooKeeper has refused the release.
const (
	minRefusal = time.Second
	maxRefusal = 15 * time.Second
)

// Release gives the lock back. As long as ZooKeeper refuses, Release keeps the lock, tells the other nodes why, and tries again at growing
// intervals, until the session is over, or all services leave it; the lock ends with the session. With --once, the first refusal leaves
// the lock to the end of its session.
func (t *stay) Release(ctx context.Context) role.Event {
	v := t.v
	trying, enough := linger(ctx, t.s.Leave, proofPatience)
	defer enough()
	for next := minRefusal; ; next = min(2*next, maxRefusal) {
		err := t.term.claim.Release(context.WithoutCancel(ctx)) // the session bounds the wait for an answer
		if err == nil {
			return role.Event{Kind: role.Released}
		}
		if t.s.Over() != nil || v.finished != nil || wait.Closed(trying.Done()) {
			v.log.Warn("cannot give the lock back, it ends with its session", "error", err)
			t.trouble = err
			t.term.runStandbyHook(ctx)
			return role.Event{Kind: role.NotReleased}
		}
		v.log.Error("the lock cannot be given back, and is kept until then", "error", err, "again in", next)
		v.offer(Unreleased)
		v.view.note = "the lock cannot be given back: " + err.Error()
		v.view.announce()
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
func (t *stay) Record(ctx context.Context) role.Event {
	v := t.v
	if v.state.Then == role.GiveUp {
		v.runHook(ctx, "on_give_up", v.conf.Hooks.OnGiveUp, string(v.state.Cause.Why()))
	}
	v.history.recordEnd(ctx, t.candidacy.cand, &t.term.entry, v.conf.Moves, t.term.endReason())
	t.term.runStandbyHook(ctx)
	return role.Event{Kind: role.Recorded}
}

// runStandbyHook runs on_standby.
func (t *term) runStandbyHook(ctx context.Context) {
	if t.lived {
		t.v.runHook(ctx, "on_standby", t.v.conf.Hooks.OnStandby, string(t.v.state.Cause.Why()))
	}
}

// runHook runs an operator's command on an event. Nothing waits for it.
func (v *Service) runHook(ctx context.Context, name string, hook config.Hook, why string, facts ...string) {
	if why != "" {
		facts = append(facts, "UNDERSTUDY_REASON="+why)
	}
	v.unit.RunHook(context.WithoutCancel(ctx), name, hook, append(v.unit.Facts(v.mem.lastTerm.token), facts...))
}
