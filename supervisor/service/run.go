package service

import (
	"context"
	"errors"
	"syscall"
	"time"

	"understudy/supervisor/child"
	"understudy/supervisor/service/role"
	"understudy/supervisor/unit"
	"understudy/supervisor/wait"
)

// Why a run is ended that could go on.
var (
	errSwitch    = errors.New("an operator wants another node to be active")
	errRestart   = errors.New("an operator wants it started anew")
	errPreferred = errors.New("a preferred node is back")
)

// Run starts the programs, and looks after them until something ends them, or has them ended. They may be alive when it returns.
func (t *term) Run(ctx context.Context) role.Event {
	v, adopt := t.v, t.adopt
	if t.adopt = nil; adopt == nil {
		v.unit.WaitUndone() // what was done is undone before it is done again
		v.takeUp()
	}
	v.inbox.tell(func() { v.inbox.programs = programs{} })
	v.view.condition, v.view.ill, v.view.note = rising, "", ""
	if adopt != nil {
		v.view.condition = working // it had come up
	}
	v.say()
	began := time.Now()
	t.run = v.unit.Start(ctx, unit.RunConfig{
		Tree: t.tree, Conf: v.conf.Service, Token: v.mem.token, MayStart: t.mayStart, Adopt: adopt,
		Health: func(said string) { v.inbox.tell(func() { v.inbox.programs.health = said }) },
		Astray: func(said string) { v.inbox.tell(func() { v.inbox.programs.astray = said }) },
	})
	well := t.attend(ctx)
	t.why = t.run.Wait()
	if first := t.run.First(); first != nil {
		t.first = first
	}
	v.makeReady(false)
	if v.view.condition == rising {
		v.mem.restarts.slow(time.Since(began))
	}
	if well > 0 && well >= v.conf.Restart.Within {
		v.mem.relapses.reset()
	}
	if ctx.Err() != nil {
		return t.over(ctx)
	}
	return t.ended()
}

// attend is there while the programs run, and tells for how long they were ready; 0: never.
func (t *term) attend(ctx context.Context) (well time.Duration) {
	v, run := t.v, t.run
	watching, enough := context.WithCancel(ctx) // orders are taken back for as long as the programs run
	defer enough()
	ready, since := run.Ready(), time.Time{}
	wait.Poke(v.inbox.stir)        // what was told before, or to a former run, counts for this one
	var preferred <-chan time.Time // when a node that is preferred has been fit for long enough
	for {
		select {
		case <-ready:
			ready, since = nil, time.Now()
			v.ails(working, "")
			v.stance.Store(fit)
			v.makeReady(true)
			t.confirm(watching)
		case <-v.inbox.stir:
			if v.takeUp() && run.Outdated(v.conf.Service) {
				run.End(unit.ErrChanged)
				continue
			}
			run.Reconfigure(v.conf.Service)
			v.tellPause()
			t.obey(watching, ready == nil)
			preferred = v.rival(preferred)
		case <-preferred:
			run.End(errPreferred)
		case <-run.Done():
			if since.IsZero() {
				return 0
			}
			return time.Since(since)
		}
	}
}

// obey carries out what operators order while the programs run.
func (t *term) obey(ctx context.Context, ready bool) {
	v := t.v
	switch v.ordered() {
	case orderSwitchover:
		t.run.End(errSwitch)
	case orderRestart:
		t.run.End(errRestart)
	case orderReload:
		t.run.Reload(syscall.Signal(v.conf.ReloadSignal))
		t.confirm(ctx)
	default:
		if ready && late(v.inbox.control(), v.mem.token) {
			t.confirm(ctx)
		}
	}
}

// ended tells, and logs, what the end of a run means that no order ended.
func (t *term) ended() role.Event {
	v, why := t.v, t.why
	var ended *unit.Ended
	var unstarted *unit.StartError
	switch {
	case errors.Is(why, child.ErrLeaseEnded), errors.Is(why, child.ErrGuardiansLost):
		return role.Event{Kind: role.LeaseOver}
	case errors.Is(why, unit.ErrChanged), errors.Is(why, errPreferred), errors.Is(why, errSwitch), errors.Is(why, errRestart):
		v.log.Info("stopping the service", "why", why)
	case errors.As(why, &unstarted):
		v.log.Error("the command cannot be started", "error", why)
	case errors.As(why, &ended) && len(v.conf.Processes) > 1:
		v.log.Info("child ended", "process", ended.Name, "status", unit.Describe(ended.Status))
	case errors.As(why, &ended):
		v.log.Info("child ended", "status", unit.Describe(ended.Status))
	default:
		v.log.Error("the service does not work", "why", why)
	}
	switch {
	case errors.Is(why, errSwitch):
		return role.Event{Kind: role.SwitchAsked}
	case errors.Is(why, errPreferred):
		return role.Event{Kind: role.PreferredBack}
	}
	v.ails(t.afterwards(), why.Error())
	if t.anew() {
		return role.Event{Kind: role.Changed}
	}
	return role.Event{Kind: role.Ended}
}

// anew tells whether the run was ended only to start another one.
func (t *term) anew() bool { return errors.Is(t.why, unit.ErrChanged) || errors.Is(t.why, errRestart) }

// afterwards is how programs are whose run has ended.
func (t *term) afterwards() condition {
	if t.anew() {
		return rising
	}
	return backing
}

// HandOver makes the term ready to go on in another image of this process.
func (t *term) HandOver(context.Context) role.Event {
	v := t.v
	if v.removed.Load() {
		return role.Event{Kind: role.NotHandedOver}
	}
	run, ok := t.run.HandOver()
	if !ok {
		return role.Event{Kind: role.NotHandedOver}
	}
	t.closeRun()
	t.unwatch()
	claim, err := t.claim.Carry()
	var c *Carried
	if err == nil {
		c, err = carry(claim, t.entry, t.tree, run)
	}
	if err != nil {
		v.log.Warn("the term cannot be handed over, it is ended", "error", err)
		run.Discard()
		return role.Event{Kind: role.StopAsked}
	}
	v.carried = c
	return role.Event{Kind: role.HandedOver}
}

// Stop asks the programs to end, for as long as that can be waited for. What ends the term meanwhile is its end.
func (t *term) Stop(ctx context.Context) role.Event {
	goesOn := ctx.Err() == nil
	t.run.Stop(ctx, t.v.conf.Service, unit.Cut{LockLost: t.lost, LeaseEnded: t.s.Ended()})
	if goesOn && ctx.Err() != nil {
		return t.over(ctx)
	}
	return role.Event{Kind: role.Stopped}
}

// closeRun ends what listens to the programs.
func (t *term) closeRun() {
	if t.run != nil {
		t.run.Close()
		t.run = nil
	}
}

// Wait waits before the next run, while nothing runs. All that may end a term ends the waiting at once.
func (t *term) Wait(ctx context.Context) role.Event {
	v := t.v
	after := time.NewTimer(t.delay)
	defer after.Stop()
	start := role.Event{Kind: role.Waited}
	var preferred <-chan time.Time
	for {
		changed := v.takeUp()
		v.tellPause()
		switch v.ordered() {
		case orderSwitchover:
			return role.Event{Kind: role.SwitchAsked}
		case orderRestart, orderReload: // what starts reads its config
			return start
		}
		switch {
		case changed:
			return start
		case t.held != role.Again && !v.inbox.control().Paused: // only the pause keeps it here
			v.giveUp("it is not paused any more")
			return role.Event{Kind: t.held}
		}
		preferred = v.rival(preferred)
		select {
		case <-after.C:
			if ctx.Err() != nil { // where both are ready, chance decides: nothing is started only to be stopped
				return t.over(ctx)
			}
			return start
		case <-ctx.Done():
			return t.over(ctx)
		case <-preferred:
			return role.Event{Kind: role.PreferredBack}
		case <-v.inbox.stir:
		}
	}
}

// giveUp gives the service to another node.
func (v *Service) giveUp(why string) {
	v.mem.relapses.gaveUp(time.Now(), v.conf.Restart.RejoinAfter)
	v.log.Warn("giving the service to another node", "why", why)
}
