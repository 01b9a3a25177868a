package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"understudy/supervisor/child"
	"understudy/supervisor/config"
	"understudy/supervisor/service/role"
	"understudy/supervisor/unit"
	"understudy/supervisor/wait"
)

// MomentCrashed is another moment, in the file that logs it: docs/operations.md has that line.
const MomentCrashed = "program crashed"

// Judge asks the restart policy what follows after a run has ended while its term goes on.
func (t *stay) Judge(ctx context.Context) role.Event {
	if ctx.Err() != nil {
		return t.term.over(ctx)
	}
	v, why := t.v, t.term.run.why
	v.view.showCondition(t.term.afterwards(), why.Error()+t.term.forecast())
	t.term.run.delay, t.term.run.held = 0, role.Again
	ended, exited := errors.AsType[*unit.Ended](why)
	_, unstarted := errors.AsType[*unit.StartError](why)
	unfit := isUnfit(why)
	switch {
	case exited && v.conf.Once:
		v.finished = &ended.Status
		t.term.run.delay = v.conf.Hold
		if t.term.run.delay > 0 {
			return role.Event{Kind: role.Again}
		}
		return role.Event{Kind: role.RanOnce}
	case unstarted && v.conf.Once:
		v.finished = &child.ExitStatus{Code: 127}
		return role.Event{Kind: role.RanOnce}
	case t.term.anew():
		return role.Event{Kind: role.Again}
	}
	hook := errors.Is(why, unit.ErrHook)
	ok := succeeded(why)
	v.mem.lastTerm.failure, v.mem.unstarted = why.Error(), unstarted || unfit
	now := time.Now().UTC()
	v.mem.lastTerm.exit, v.mem.lastTerm.exited = why.Error(), &now
	before := v.mem.restarts
	next := v.mem.restarts.after(why)
	if hook && !next.again {
		next.why = "on_active keeps failing"
	}
	over := role.Failed
	switch {
	case ok:
		over = role.Done
	case hook:
		over = role.HookFailed
	}
	// No other node would take it.
	if !next.again && v.inbox.intents.control().Paused && v.conf.Restart.Policy != config.RestartNever && !ok {
		next = verdict{again: true, after: max(v.conf.Restart.MaxDelay, time.Second)}
		v.mem.restarts = before // it is given up when the pause ends, unless it has run well by then
		t.term.run.held = over
	}
	if next.again && v.copy.compared() {
		v.log.Info("the copies are compared before one is promoted again")
		return role.Event{Kind: role.Yielded}
	}
	if next.again && t.term.relieved(ctx) {
		v.log.Info("the program of another node stands by: it is promoted")
		return role.Event{Kind: role.Yielded}
	}
	if next.again {
		v.log.Info(MomentAgain, "after", next.after)
		v.node.Observer.Restarted(v.name)
		v.mem.lastTerm.restarts++
		t.term.run.delay = next.after
		return role.Event{Kind: role.Again}
	}
	v.giveUp(next.why)
	return role.Event{Kind: over}
}

// relieved reports whether the warm program of another node could go on in place of the one here, which has failed. How often a node gives
// up bounds that, or, where it never does, once: a program that fails everywhere does not go to and fro for ever.
func (t *term) relieved(ctx context.Context) bool {
	most := cmp.Or(t.v.conf.Restart.GiveUpAfter, 2)
	if t.v.copy == nil || len(t.v.mem.restarts.failures) >= most || t.v.inbox.intents.control().Paused {
		return false
	}
	rivaled, err := t.cand.Members.Rivaled(ctx)
	return rivaled && err == nil
}

// after decides after a run that ended for that reason.
func (r *restarts) after(why error) verdict {
	if isUnfit(why) { // another try here would end in the same way
		r.reset()
		return verdict{why: "this host cannot run it: " + why.Error()}
	}
	_, unstarted := errors.AsType[*unit.StartError](why)
	return r.ended(time.Now(), succeeded(why), !unstarted && !errors.Is(why, unit.ErrHook))
}

// isUnfit reports whether a run ended because this host cannot run the service now.
func isUnfit(why error) bool {
	_, unfit := errors.AsType[*unit.Unfit](why)
	return unfit
}

// succeeded reports whether a run ended because a program exited with code 0.
func succeeded(why error) bool {
	ended, exited := errors.AsType[*unit.Ended](why)
	return exited && ended.Status.Code == 0
}

// logFailure logs how a run ended that nobody ordered to end, and what follows. Judge decides that, unless the term ends before.
func (t *term) logFailure() {
	v, why := t.v, t.run.why
	forecast := v.mem.restarts
	next := forecast.after(why)
	var facts []any
	if next.failed != "" && !v.conf.Once {
		facts = append(facts, "failure", next.failed)
	}
	if next.again && !v.conf.Once {
		facts = append(facts, "next_start", next.after)
	}
	ended, exited := errors.AsType[*unit.Ended](why)
	_, unstarted := errors.AsType[*unit.StartError](why)
	switch {
	case unstarted:
		v.log.Error("the program cannot be started", append([]any{"error", why}, facts...)...)
		return
	case !exited:
		v.log.Error("the service does not work", append([]any{"why", why}, facts...)...)
		return
	}
	if len(v.conf.Processes) > 1 {
		facts = append([]any{"process", ended.Name}, facts...)
	}
	facts = append(facts, "status", unit.Describe(ended.Status))
	if ended.Why != "" {
		facts = append(facts, "why", ended.Why)
	}
	switch {
	case ended.Status.Signal != 0:
		v.log.Warn(MomentCrashed, facts...)
	case ended.Status.Code == 0 && v.conf.Once: // as it should
		v.log.Info("program exited", facts...)
	default:
		v.log.Warn("program exited", facts...)
	}
}

// forecast gives the count of failures and the delay before the next start, as words that follow the reason.
func (t *term) forecast() string {
	restarts := t.v.mem.restarts
	next := restarts.after(t.run.why)
	if t.anew() || t.v.conf.Once || !next.again || next.failed == "" {
		return ""
	}
	return fmt.Sprintf(" (failure %s, starts again after %v)", next.failed, next.after)
}

// giveUp gives the service to another node.
func (v *Service) giveUp(why string) {
	v.mem.preference.relapses.gaveUp(time.Now(), v.conf.Restart.RejoinAfter)
	v.log.Warn("giving the service to another node", "why", why)
}

// Wait waits before the next run, or before the end of what ran once, while no program runs. Every cause that may end a term ends the wait.
func (t *stay) Wait(ctx context.Context) role.Event {
	v := t.v
	if v.finished != nil {
		wait.For(ctx, t.term.run.delay)
		return role.Event{Kind: role.RanOnce}
	}
	after := time.NewTimer(t.term.run.delay)
	defer after.Stop()
	start := role.Event{Kind: role.Waited}
	waiting, enough := context.WithCancel(ctx)
	defer enough()
	t.term.confirmFailure(waiting)
	var preferred <-chan time.Time
	for {
		changed := v.applyConfig()
		v.view.announceChange()
		switch v.ordered() {
		case orderSwitchover:
			return role.Event{Kind: role.SwitchAsked}
		case orderStop:
			return role.Event{Kind: role.StopOrdered}
		case orderRestart, orderReload: // programs read their config at the start anyway
			return start
		}
		switch {
		case changed:
			return start
		case t.term.run.held != role.Again && !v.inbox.intents.control().Paused: // only the pause keeps the service here
			v.giveUp("the service failed during the pause, which is over now")
			return role.Event{Kind: t.term.run.held}
		}
		preferred = v.preferredTimer(preferred)
		select {
		case <-after.C:
			if ctx.Err() != nil { // select picks at random if both are ready: do not start a program only to stop it
				return t.term.over(ctx)
			}
			return start
		case <-ctx.Done():
			return t.term.over(ctx)
		case <-preferred:
			return role.Event{Kind: role.PreferredBack}
		case <-v.inbox.news:
		}
	}
}
