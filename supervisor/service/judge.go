package service

import (
	"context"
	"errors"
	"time"

	"understudy/supervisor/child"
	"understudy/supervisor/config"
	"understudy/supervisor/service/role"
	"understudy/supervisor/unit"
)

// Judge asks the restart policy what follows after a run has ended while its term goes on.
func (t *runs) Judge(ctx context.Context) role.Event {
	if ctx.Err() != nil {
		return t.over(ctx)
	}
	v, why := t.v, t.why
	v.view.ails(t.afterwards(), why.Error())
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
	v.mem.story.failed(why.Error())
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
	if !next.again && v.inbox.intents.control().Paused && v.conf.Restart.Policy != config.RestartNever && !ok { // no other node would take it
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
	t.giveUp(next.why)
	return role.Event{Kind: over}
}

// giveUp gives the service to another node.
func (t *runs) giveUp(why string) {
	t.v.mem.preference.gaveUp(time.Now())
	t.v.log.Warn("giving the service to another node", "why", why)
}
