package service

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"understudy/election"
	"understudy/supervisor/child"
	"understudy/supervisor/host"
	"understudy/supervisor/service/role"
	"understudy/supervisor/unit"
	"understudy/supervisor/wait"
)

// Causes that end a run which could go on.
var (
	errSwitch    = errors.New("an operator wants another node to be active")
	errStop      = errors.New("an operator wants the service to be stopped")
	errRestart   = errors.New("an operator wants it restarted")
	errPreferred = errors.New("a preferred node is back")
)

// run is the newest run of a term's programs.
type run struct {
	programs *unit.Run        // nil: there are none
	adopt    *unit.CarriedRun // the programs of a previous image of this process, which the next run continues
	cutOff   <-chan struct{}  // closed when nobody looks whether another node may take what has no link here; nil: nobody does
	first    host.Process
	unnoted  error          // why what survives a boot cannot be noted; nil: it is, or nothing does
	why      error          // why the run ended
	delay    time.Duration  // before the next one
	held     role.EventKind // the event in place of the next run, once automatic takeovers are on again; Again: none

	checked  <-chan error     // whether the programs may be told to reload
	reloaded <-chan time.Time // fires when the programs have lived long enough after their reload signal
}

// Run starts the programs, and looks after them until an event ends the run. They may be alive when it returns.
func (t *stay) Run(ctx context.Context) role.Event {
	v, adopt := t.v, t.term.run.adopt
	t.term.run.adopt = nil
	if adopt == nil {
		v.applyConfig()
		v.unit.StopUndo()
		if !t.term.list(ctx) {
			return t.term.over(ctx)
		}
		v.view.showStart(rising)
		t.term.entry.noteStarting()
	} else {
		v.view.showStart(working) // the service had come up
	}
	var stdin *os.File
	if v.conf.Once {
		stdin = os.Stdin
	}
	began := time.Now()
	t.term.run.programs = v.unit.Start(ctx, t.term.promotion.withPromotion(&t.term, t.term.runConfig(adopt, stdin)))
	v.step.Store(&step{endless, t.term.run.programs.Done()})
	well := t.term.attend(ctx)
	t.term.run.why = t.term.run.programs.Wait()
	t.term.judgeReload(t.term.run.why)
	if first := t.term.run.programs.First(); first != nil {
		t.term.run.first = first
	}
	v.view.showReady(false)
	if v.view.wellness.condition == rising {
		v.mem.restarts.slow(time.Since(began))
	}
	if well > 0 && well >= v.conf.Restart.Within {
		v.mem.preference.relapses.reset()
	}
	if ctx.Err() != nil {
		e := t.term.over(ctx)
		if e.Kind == role.Expired && t.term.outlasts() > 0 {
			e.Kind = role.Outlasted
		}
		return e
	}
	return t.term.ended()
}

func (t *term) runConfig(adopt *unit.CarriedRun, stdin *os.File) unit.RunConfig {
	v := t.v
	return unit.RunConfig{
		Tree: t.tree, Conf: v.conf.Service, Token: v.mem.lastTerm.token, MayStart: t.mayStart,
		Fault: t.run.unnoted, Stdin: stdin, Adopt: adopt,
		Health: v.view.wellness.checked, Astray: v.view.wellness.strayed, Claimed: func() { v.node.Observer.Claimed(v.name) },
		Lost: v.view.wellness.cutOff,
	}
}

// list makes the breadcrumb list the effects of the next run: P5. As a
// rule the claim has done so. It reports false if the term ends before.
func (t *term) list(ctx context.Context) bool {
	effects := effectsOf(t.v.conf.Service)
	if t.run.unnoted = t.noteLasting(effects); t.run.unnoted != nil {
		return true // P6: nothing is started, and after a boot no note would show that nothing is left
	}
	for !t.listed.Lists(effects) {
		there, err := t.cand.Crumb.ListEffects(ctx, idOf(t.tree), effects)
		switch {
		case there && err == nil:
			t.listed = effects
		case !wait.For(ctx, listAgain): // if the breadcrumb was deleted by hand, the term writes it again
			return false
		}
	}
	return true
}

// noteLasting prepares the note of what survives a boot. P2: what the breadcrumb says of it is answered from there.
func (t *term) noteLasting(effects election.Effects) error {
	lasting := int64(0)
	if len(effects.Survive) > 0 {
		lasting = t.v.mem.lastTerm.token
	}
	err := t.v.unit.Last(lasting)
	switch {
	case err != nil && lasting != 0:
		return fmt.Errorf("cannot note what survives a boot of this host: %w", err)
	case err != nil:
		t.v.log.Debug("cannot note yet that nothing survives a boot", "error", err) // the next note says so
	}
	return nil
}

// listAgain is the pause after an attempt to list effects.
const listAgain = 100 * time.Millisecond

// attend follows events while the programs run, and returns how long they were ready; 0: never.
func (t *term) attend(ctx context.Context) (well time.Duration) {
	v, run := t.v, t.run.programs
	watching, enough := context.WithCancel(ctx) // executed orders are removed as long as the programs run
	defer enough()
	ready, since := run.Ready(), time.Time{}
	v.inbox.news.wake() // earlier news counts for this run, too
	t.confirmFailure(watching)
	if v.node.Links != nil {
		t.helpers.Go(func() { v.node.Links(watching, v.name, v.view.wellness.cutOff) })
	}
	var preferred <-chan time.Time // fires when a preferred node has been fit for long enough
	for resumed := t.s.Resumed(); ; {
		select {
		case <-resumed: // while the network was away, neighbours and switches may have forgotten this host
			resumed = t.s.Resumed()
			if ready == nil { // until then a signal may end what does not expect it yet
				run.Announce()
			}
		case <-ready:
			ready, since = nil, time.Now()
			if v.copy != nil {
				v.copy.primary(v.mem.lastTerm.token)
			}
			t.entry.noteReady(run.Hooked())
			v.view.showCondition(working, "")
			v.offer(Fit)
			v.view.showReady(true)
			t.confirm(watching)
		case <-v.inbox.news:
			if v.applyConfig() && run.Outdated(v.conf.Service) {
				run.End(unit.ErrChanged)
				continue
			}
			run.Reconfigure(v.conf.Service)
			v.view.announceChange()
			t.obey(watching, ready == nil)
			preferred = v.preferredTimer(preferred)
			if ready == nil {
				t.leaveUnreachable(time.Since(since))
			}
			t.leaveCutOff(watching)
		case <-preferred:
			run.End(errPreferred)
		case err := <-t.run.checked:
			t.reload(watching, err)
		case <-t.run.reloaded:
			t.judgeReload(nil)
			t.confirm(watching)
		case <-run.Done():
			if since.IsZero() {
				return 0
			}
			return time.Since(since)
		}
	}
}

// obey executes operators' orders while the programs run.
func (t *term) obey(ctx context.Context, ready bool) {
	v := t.v
	switch v.ordered() {
	case orderSwitchover:
		t.run.programs.End(errSwitch)
	case orderStop:
		t.run.programs.End(errStop)
	case orderRestart:
		t.run.programs.End(errRestart)
	case orderReload:
		v.inbox.intents.reload = reload{observed: true}
		t.run.checked, t.run.reloaded = t.run.programs.CheckReload(ctx, v.conf.ReloadCheck), nil
	default:
		if ready && v.inbox.intents.late(v.mem.lastTerm.token) {
			t.confirm(ctx)
		}
	}
}

// ordered returns the operators' order for this activation. A restart forgets all failures.
func (v *Service) ordered() order {
	o := v.inbox.intents.ordered(v.mem.lastTerm.token)
	switch o {
	case orderRestart:
		v.mem.restarts.reset()
	case orderStop:
		v.copy.halt(role.Paused, true, v.inbox.intents.control().Words())
	}
	return o
}

// preferredTimer arms, keeps or disarms the timer for a preferred node.
func (v *Service) preferredTimer(armed <-chan time.Time) <-chan time.Time {
	now, _ := v.inbox.intents.read()
	after, there := v.mem.preference.preferredBack(time.Now(), now)
	switch {
	case !there:
		return nil
	case armed == nil:
		return time.After(after)
	}
	return armed
}

// ended logs how the run ended, and returns the event.
func (t *term) ended() role.Event {
	v, why := t.v, t.run.why
	_, unreached := errors.AsType[unreachable](why)
	switch {
	case errors.Is(why, child.ErrLeaseEnded), errors.Is(why, child.ErrGuardiansLost):
		return role.Event{Kind: role.LeaseOver}
	case unreached:
		v.mem.lastTerm.failure = why.Error()
		v.giveUp(why.Error())
		return role.Event{Kind: role.NotReachable}
	case errors.Is(why, unit.ErrChanged), errors.Is(why, errPreferred), errors.Is(why, errSwitch),
		errors.Is(why, errStop), errors.Is(why, errRestart):
		v.log.Info(MomentStopping, "why", why)
	default:
		t.logFailure()
	}
	switch {
	case errors.Is(why, errSwitch):
		return role.Event{Kind: role.SwitchAsked}
	case errors.Is(why, errStop):
		return role.Event{Kind: role.StopOrdered}
	case errors.Is(why, errPreferred):
		return role.Event{Kind: role.PreferredBack}
	}
	if v.copy.compared() && t.anew() { // the copies are compared before any is promoted
		return role.Event{Kind: role.RestartAsked}
	}
	v.view.showCondition(t.afterwards(), why.Error()+t.forecast())
	if t.anew() {
		return role.Event{Kind: role.Changed}
	}
	return role.Event{Kind: role.Ended}
}

// anew reports whether the run was ended only to start another one.
func (t *term) anew() bool {
	return errors.Is(t.run.why, unit.ErrChanged) || errors.Is(t.run.why, errRestart)
}

// afterwards is the condition of programs whose run has ended.
func (t *term) afterwards() condition {
	if t.anew() {
		return rising
	}
	return backing
}

// HandOver prepares the term to go on in another image of this process, or in the next session.
func (t *stay) HandOver(context.Context) role.Event {
	v, refused := t.v, role.NotHandedOver
	if v.Removed() || t.term.run.programs == nil {
		return role.Event{Kind: refused}
	}
	until := t.term.outlasts()
	if wait.Closed(t.s.Ended()) {
		refused = role.Expired
	}
	if refused == role.Expired && until == 0 {
		return role.Event{Kind: refused}
	}
	run, ok := t.term.run.programs.HandOver()
	if !ok {
		return role.Event{Kind: refused}
	}
	t.term.closeRun()
	t.term.unwatch()
	t.term.entry.drainReadiness()
	claim, err := t.term.claim.Carry()
	var c *CarriedTerm
	if err == nil {
		c, err = t.term.carry(claim, run)
	}
	if err != nil {
		v.log.Warn("cannot hand the activation over, ending it", "error", err)
		run.Discard()
		return role.Event{Kind: role.StopAsked}
	}
	c.until, v.carried = until, c
	return role.Event{Kind: role.HandedOver}
}

// Stop asks the programs to end, and waits for that as long as it may. If another event ends the term meanwhile, Stop reports it.
func (t *stay) Stop(ctx context.Context) role.Event {
	t.term.promotion.runToStop(ctx, t)
	if t.term.run.programs == nil { // the term ended before anything was started
		return role.Event{Kind: role.Stopped}
	}
	goesOn := ctx.Err() == nil
	if goesOn && t.term.promotion.demote(ctx, &t.term) {
		return role.Event{Kind: role.Stopped}
	}
	t.term.run.programs.Stop(ctx, t.v.conf.Service, t.term.cut())
	if goesOn && ctx.Err() != nil {
		return t.term.over(ctx)
	}
	return role.Event{Kind: role.Stopped}
}

func (t *term) cut() unit.Cut { return unit.Cut{LockLost: t.lost, LeaseEnded: t.s.Ended()} }

// Clear kills processes that the programs left behind, until their death is proved or the term has to end. The programs may start again
// in the same tree.
func (t *stay) Clear(ctx context.Context) role.Event {
	v := t.v
	for {
		bounded, cancel := context.WithTimeout(ctx, proofPatience)
		err := t.candidacy.tree.Kill(bounded)
		cancel()
		if err == nil {
			break
		}
		if ctx.Err() != nil {
			return t.term.over(ctx)
		}
		v.log.Error("processes that the program left behind do not die", "error", err)
		v.view.showCondition(unproved, unprovedDeath(err))
	}
	t.term.closeRun()
	t.term.entry.noteCleared()
	if t.term.leaseOver() { // the lease's end killed the programs: they did not fail
		return role.Event{Kind: role.LeaseOver}
	}
	return role.Event{Kind: role.Proved}
}

// closeRun ends the goroutines that listen to the programs.
func (t *term) closeRun() {
	if t.run.programs != nil {
		if t.run.programs.Began() {
			t.entry.noteStopped(t.run.programs.Ended())
		} else {
			t.entry.noteNotStarted()
		}
		t.run.programs.Close()
		t.run.programs = nil
	}
}
