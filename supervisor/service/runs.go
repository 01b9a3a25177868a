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

// Causes that end a run which could go on.
var (
	errSwitch    = errors.New("an operator wants another node to be active")
	errRestart   = errors.New("an operator wants it restarted")
	errPreferred = errors.New("a preferred node is back")
)

// runs are the runs of a term's programs, one after the other.
type runs struct {
	*term
	fence *fence

	run   *unit.Run
	adopt *unit.Carried // the programs that the next run continues
	first unit.Process
	why   error         // why the newest run ended
	delay time.Duration // before the next one
	held  role.Kind     // the event in place of the next run, once the service is not paused any more; Again: none
}

// begin resets the state of a former term. adopt are the programs that a former image of this process has started, or nil.
func (t *runs) begin(adopt *unit.Carried) { *t = runs{term: t.term, fence: t.fence, adopt: adopt} }

// Run starts the programs, and looks after them until an event ends the run. They may be alive when it returns.
func (t *runs) Run(ctx context.Context) role.Event {
	v, adopt := t.v, t.adopt
	if t.adopt = nil; adopt == nil {
		v.unit.WaitUndone() // oneshots are undone before they run again
		v.takeUp()
	}
	if adopt == nil {
		v.view.begins(rising)
	} else {
		v.view.begins(working) // the service had come up
	}
	began := time.Now()
	t.run = v.unit.Start(ctx, unit.RunConfig{
		Tree: t.tree, Conf: v.conf.Service, Token: v.mem.story.token, MayStart: t.fence.mayStart, Adopt: adopt,
		Health: v.view.wellness.checked, Astray: v.view.wellness.strayed,
	})
	well := t.attend(ctx)
	t.why = t.run.Wait()
	if first := t.run.First(); first != nil {
		t.first = first
	}
	v.view.makeReady(false)
	if v.view.wellness.condition == rising {
		v.mem.restarts.slow(time.Since(began))
	}
	if well > 0 && well >= v.conf.Restart.Within {
		v.mem.preference.relapses.reset()
	}
	if ctx.Err() != nil {
		return t.over(ctx)
	}
	return t.ended()
}

// attend follows events while the programs run, and returns how long they were ready; 0: never.
func (t *runs) attend(ctx context.Context) (well time.Duration) {
	v, run := t.v, t.run
	watching, enough := context.WithCancel(ctx) // executed orders are removed as long as the programs run
	defer enough()
	ready, since := run.Ready(), time.Time{}
	v.inbox.news.stir()            // earlier news counts for this run, too
	var preferred <-chan time.Time // fires when a preferred node has been fit for long enough
	for {
		select {
		case <-ready:
			ready, since = nil, time.Now()
			v.view.ails(working, "")
			v.handover.offer(Fit)
			v.view.makeReady(true)
			t.confirm(watching)
		case <-v.inbox.news:
			if v.takeUp() && run.Outdated(v.conf.Service) {
				run.End(unit.ErrChanged)
				continue
			}
			run.Reconfigure(v.conf.Service)
			v.view.tellPause()
			t.obey(watching, ready == nil)
			preferred = t.rival(preferred)
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

// obey executes operators' orders while the programs run.
func (t *runs) obey(ctx context.Context, ready bool) {
	v := t.v
	switch t.ordered() {
	case orderSwitchover:
		t.run.End(errSwitch)
	case orderRestart:
		t.run.End(errRestart)
	case orderReload:
		t.run.Reload(syscall.Signal(v.conf.ReloadSignal))
		t.confirm(ctx)
	default:
		if ready && v.inbox.intents.late(v.mem.story.token) {
			t.confirm(ctx)
		}
	}
}

// ordered returns the operators' order for this activation. A restart forgets all failures.
func (t *runs) ordered() order {
	o := t.v.inbox.intents.ordered(t.v.mem.story.token)
	if o == orderRestart {
		t.v.mem.restarts.reset()
	}
	return o
}

// confirm removes the orders that this activation has executed, or that were for a former one.
func (t *runs) confirm(ctx context.Context) {
	takeBack := t.v.inbox.intents.answer(t.v.mem.story.token)
	if takeBack == nil {
		return
	}
	t.helpers.Go(func() {
		wait.For(ctx, settling) // no urgent work waits for it
		if err := t.cand.Control.Amend(ctx, takeBack); err != nil && ctx.Err() == nil {
			t.v.log.Warn("cannot remove an operator's order", "error", err)
		}
	})
}

// rival arms, keeps or disarms the timer for a preferred node.
func (t *runs) rival(armed <-chan time.Time) <-chan time.Time {
	now, _ := t.v.inbox.intents.read()
	after, there := t.v.mem.preference.rival(time.Now(), now)
	switch {
	case !there:
		return nil
	case armed == nil:
		return time.After(after)
	}
	return armed
}

// ended logs how the run ended, and returns the event.
func (t *runs) ended() role.Event {
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
	v.view.ails(t.afterwards(), why.Error())
	if t.anew() {
		return role.Event{Kind: role.Changed}
	}
	return role.Event{Kind: role.Ended}
}

// anew reports whether the run was ended only to start another one.
func (t *runs) anew() bool { return errors.Is(t.why, unit.ErrChanged) || errors.Is(t.why, errRestart) }

// afterwards is the condition of programs whose run has ended.
func (t *runs) afterwards() condition {
	if t.anew() {
		return rising
	}
	return backing
}

// HandOver prepares the term to go on in another image of this process.
func (t *runs) HandOver(context.Context) role.Event {
	v := t.v
	if v.Removed() {
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
		c, err = carry(claim, t.entry.Activation, t.tree, run)
	}
	if err != nil {
		v.log.Warn("cannot hand the term over, ending it", "error", err)
		run.Discard()
		return role.Event{Kind: role.StopAsked}
	}
	v.handover.keep(c)
	return role.Event{Kind: role.HandedOver}
}

// Stop asks the programs to end, and waits for that as long as it may. If another event ends the term meanwhile, Stop reports it.
func (t *runs) Stop(ctx context.Context) role.Event {
	goesOn := ctx.Err() == nil
	t.run.Stop(ctx, t.v.conf.Service, unit.Cut{LockLost: t.lost, LeaseEnded: t.s.Ended()})
	if goesOn && ctx.Err() != nil {
		return t.over(ctx)
	}
	return role.Event{Kind: role.Stopped}
}

// Clear kills processes that the programs left behind, until their death is proved or the term has to end. The programs may start again
// in the same tree.
func (t *runs) Clear(ctx context.Context) role.Event {
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
		v.log.Error("processes that the child left behind do not die", "error", err)
		v.view.ails(unproved, unprovedDeath(err))
	}
	t.closeRun()
	if t.leaseOver() { // the lease's end killed the programs: they did not fail
		return role.Event{Kind: role.LeaseOver}
	}
	return role.Event{Kind: role.Proved}
}

// closeRun ends the goroutines that listen to the programs.
func (t *runs) closeRun() {
	if t.run != nil {
		t.run.Close()
		t.run = nil
	}
}

// Wait waits before the next run, while no program runs. Every cause that may end a term ends the wait.
func (t *runs) Wait(ctx context.Context) role.Event {
	v := t.v
	after := time.NewTimer(t.delay)
	defer after.Stop()
	start := role.Event{Kind: role.Waited}
	var preferred <-chan time.Time
	for {
		changed := v.takeUp()
		v.view.tellPause()
		switch t.ordered() {
		case orderSwitchover:
			return role.Event{Kind: role.SwitchAsked}
		case orderRestart, orderReload: // programs read their config at the start anyway
			return start
		}
		switch {
		case changed:
			return start
		case t.held != role.Again && !v.inbox.intents.control().Paused: // only the pause keeps the service here
			t.giveUp("it is not paused any more")
			return role.Event{Kind: t.held}
		}
		preferred = t.rival(preferred)
		select {
		case <-after.C:
			if ctx.Err() != nil { // select picks at random if both are ready: do not start a program only to stop it
				return t.over(ctx)
			}
			return start
		case <-ctx.Done():
			return t.over(ctx)
		case <-preferred:
			return role.Event{Kind: role.PreferredBack}
		case <-v.inbox.news:
		}
	}
}
