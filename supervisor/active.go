package supervisor

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"understudy/election"
	"understudy/supervisor/child"
	"understudy/supervisor/config"
	"understudy/supervisor/unit"
)

// active keeps the child running for as long as the lock is ours and the lease lasts, and tells what ended it. The child
// may still be alive when it returns.
func (v *service) active(ctx context.Context, t turn, claim *election.Claim, tree Tree, entry *election.Activation) event {
	// The lock is watched until nothing waits for the child any more: one that is asked to stop may take its time.
	watching, unwatch := context.WithCancel(context.WithoutCancel(ctx))
	ctx, cancel := context.WithCancelCause(ctx)
	lost := make(chan struct{})
	t.lost = lost
	var wg sync.WaitGroup
	wg.Go(func() {
		pause(watching, startFirst) // what is missed meanwhile is seen in the first look
		err := claim.Watch(watching)
		close(lost)
		cancel(fmt.Errorf("%w: %w", election.ErrLost, err))
		if watching.Err() == nil {
			v.cut(context.WithoutCancel(ctx), t.cand, tree)
		}
	})
	if v.OnLoss == config.OnLossFailsafe {
		wg.Go(func() { t.gate.Count(ctx, v.name, claim, t.cand.Peers) })
	}
	moves := v.Moves
	wg.Go(func() {
		if !pause(ctx, settling) {
			return // it is recorded at the term's end
		}
		if entry.Entry != "" {
			return // by a former image of this process
		}
		name, err := t.cand.Record(context.WithoutCancel(ctx), *entry, epitaph(entry.Fenced))
		entry.Entry = name
		if err != nil && ctx.Err() == nil {
			v.log.Debug("the history is incomplete", "service", v.name, "error", err)
		}
		v.stayPut(ctx, t, moves)
	})
	defer wg.Wait()
	defer unwatch()
	defer cancel(nil)
	for {
		ev, after := v.runOnce(ctx, t, tree)
		if ev == nothingYet || after > 0 {
			ev = v.backOff(ctx, after, ev)
		}
		if ev != nothingYet {
			return ev
		}
	}
}

// cut ends the tree at once, whatever a check, a hook or an undo is about in it. P1: another node may be counting its grace
// delay. The proof is the term's. Without a candidate nothing is said in the breadcrumb.
func (v *service) cut(ctx context.Context, cand *election.Candidate, tree Tree) {
	for _, patience := range []time.Duration{buryFirst, proofPatience} {
		bounded, cancel := context.WithTimeout(ctx, patience)
		err := tree.End(bounded)
		cancel()
		if err == nil {
			return
		}
		v.log.Debug("not proved dead at once", "service", v.name, "error", err)
		v.record(ctx, cand, idOf(tree), err) // P5: whoever takes over is to hear of it before its delay is over
	}
}

// startFirst is what the child's start is given, before anything else is asked of ZooKeeper.
const startFirst = 10 * time.Millisecond

// epitaph is what the history says of a former active that could not say it itself.
func epitaph(fenced string) string {
	if fenced == nobody {
		return "supervisor lost; its child was known to be dead"
	}
	return "lost; fenced: " + fenced
}

// nothingYet is runOnce's word for: start it again. With another event and a delay, a pause is all that keeps the service here.
const nothingYet event = 255

// runOnce starts the child, waits for its end or for an order, and leaves nothing of it alive when it is to be started
// again.
func (v *service) runOnce(ctx context.Context, t turn, tree Tree) (event, time.Duration) {
	adopts, until := v.running, v.until
	if v.running = nil; adopts == nil {
		v.unit.WaitUndone()
		v.takeUp()
	}
	v.news.mu.Lock()
	v.news.health, v.news.astray = "", ""
	v.news.mu.Unlock()
	began := time.Now()
	run := v.unit.Start(ctx, unit.RunConfig{
		Tree: tree, Conf: v.Service.Service, Token: v.token, Adopt: adopts,
		MayStart: func() error { // P1: whatever the role says
			if until > 0 && v.machine.Now() < until {
				return errPromised
			}
			return nil
		},
		Health: func(said string) { v.news.tell(func() { v.news.health = said }) },
		Astray: func(said string) { v.news.tell(func() { v.news.astray = said }) },
	})
	defer run.Close()
	since, err := v.attend(ctx, t, run, adopts != nil)
	if p := run.First(); p != nil {
		v.process = p
	}
	if v.condition == rising {
		v.tries.slow(time.Since(began))
	}
	if !since.IsZero() && time.Since(since) >= v.Restart.Within {
		v.relapses.reset()
	}
	v.stance.Store(passing)
	if handing(ctx) && v.handsOver(run) {
		return handedOver, 0
	}
	cut := unit.Cut{LockLost: t.lost, LeaseEnded: t.sess.Ended()}
	if ctx.Err() != nil {
		ev := ending(ctx)
		v.on(ev, "token", v.token)
		if ev != lockLost { // P1: another node may be counting its grace delay
			run.Stop(ctx, v.Service.Service, cut)
		}
		return ev, 0
	}
	if errors.Is(err, child.ErrLeaseEnded) || errors.Is(err, child.ErrGuardiansLost) {
		return leaseEnding, 0
	}
	v.tellWhy(err)
	if ev := handsAway(err); ev != nothingYet {
		v.on(ev, "token", v.token) // the stop may take a while
	} else {
		v.ails(afterwards(err), err.Error())
	}
	run.Stop(ctx, v.Service.Service, cut)
	// What the child left behind ends with it.
	if err := v.empty(ctx, tree); err != nil {
		return ending(ctx), 0
	}
	if v.leaseOver(t) {
		return leaseEnding, 0 // that is why it ended: not its own doing
	}
	v.unit.UndoAll(ctx)
	if v.state.role == Active {
		v.ails(afterwards(err), err.Error())
	}
	return v.verdict(err)
}

// attend does what is due while the unit runs, and returns why that has ended, and since when the unit was ready; zero: it was not.
func (v *service) attend(ctx context.Context, t turn, run *unit.Run, adopted bool) (since time.Time, err error) {
	ctx, enough := context.WithCancel(ctx)
	defer enough()
	if v.condition, v.ill, v.note = rising, "", ""; adopted {
		v.condition = working // it had come up
	}
	v.say()
	defer v.makeReady(false)
	ready := run.Ready()
	poke(v.news.stir)              // what was told before, or to a former run, counts for this one
	var preferred <-chan time.Time // when a node that is preferred has been fit for long enough
	for {
		select {
		case <-ready:
			ready, since = nil, time.Now()
			if v.condition == rising {
				v.ails(working, "")
			}
			v.stance.Store(fit)
			v.makeReady(true)
			v.confirm(ctx, t)
		case <-v.news.stir:
			if v.takeUp() {
				if run.Outdated(v.Service.Service) {
					run.End(unit.ErrChanged)
					continue
				}
				run.Reconfigure(v.Service.Service)
			}
			v.hear()
			v.obey(ctx, t, run, ready == nil)
			preferred = v.rival(preferred)
		case <-preferred:
			run.End(errPreferred)
		case <-run.Done():
			return since, run.Wait()
		}
	}
}

// handsOver takes the programs out of the unit's hands, if all is well with them.
func (v *service) handsOver(run *unit.Run) (ok bool) {
	if v.removed.Load() {
		return false
	}
	v.running, ok = run.HandOver()
	return ok
}

// errPreferred says that a node that is preferred, and fit, waits.
var errPreferred = errors.New("a preferred node is back")

// settledIn is how long a preferred node has to be fit before the service is given to it.
const settledIn = 2 * time.Second

// rival arms, keeps or disarms the timer for a node that is preferred.
func (v *service) rival(armed <-chan time.Time) <-chan time.Time {
	v.news.mu.Lock()
	wishes := v.news.wishes
	v.news.mu.Unlock()
	if !v.Failback || wishes.Control.Paused || wishes.Rival(v.node.Node, v.Priority) == "" {
		return nil
	}
	if armed == nil {
		return time.After(max(settledIn, time.Until(v.vain)))
	}
	return armed
}

func (v *service) leaseOver(t turn) bool {
	select {
	case <-v.guard.Over(t.epoch):
		return true
	case <-t.sess.Ended():
		return true
	default:
		return v.machine.Now() >= t.sess.LeaseEnd()
	}
}

// tellWhy logs what ended a unit's run.
func (v *service) tellWhy(why error) {
	var ended *unit.Ended
	var unstarted *unit.StartError
	switch {
	case errors.Is(why, unit.ErrChanged), errors.Is(why, errPreferred), errors.Is(why, errSwitch), errors.Is(why, errRestart):
		v.log.Info("stopping the service", "service", v.name, "why", why)
	case errors.As(why, &unstarted):
		v.log.Error("the command cannot be started", "service", v.name, "error", why)
	case errors.As(why, &ended) && len(v.Processes) > 1:
		v.log.Info("child ended", "service", v.name, "process", ended.Name, "status", unit.Describe(ended.Status))
	case errors.As(why, &ended):
		v.log.Info("child ended", "service", v.name, "status", unit.Describe(ended.Status))
	default:
		v.log.Error("the service does not work", "service", v.name, "why", why)
	}
}

// verdict decides what follows when a unit's run has ended without the term's being over.
func (v *service) verdict(why error) (event, time.Duration) {
	var ended *unit.Ended
	var unstarted *unit.StartError
	errors.As(why, &ended)
	errors.As(why, &unstarted)
	switch {
	case ended != nil && v.Once:
		v.finished = &ended.Status
		return childOnce, 0
	case unstarted != nil && v.Once:
		v.finished = &child.ExitStatus{Code: 127}
		return childOnce, 0
	case errors.Is(why, unit.ErrChanged), errors.Is(why, errRestart):
		return nothingYet, 0
	}
	if ev := handsAway(why); ev != nothingYet {
		return ev, 0
	}
	ok := ended != nil && ended.Status.Code == 0
	started := unstarted == nil && !errors.Is(why, unit.ErrHook)
	v.failure = why.Error()
	before := v.tries
	next := v.tries.ended(time.Now(), ok, started)
	if errors.Is(why, unit.ErrHook) && !next.again {
		next.why = "on_active failed again and again"
	}
	over := childFailed
	switch {
	case next.again:
		over = nothingYet
	case ok:
		over = childDone
	case errors.Is(why, unit.ErrHook):
		over = hookFailed
	}
	if !next.again && v.held() && v.Restart.Policy != config.RestartNever && !ok {
		next = verdict{again: true, after: v.Restart.MaxDelay} // nobody else would take it
		v.tries = before                                       // it is given up when the pause ends, unless it has run well by then
	}
	if next.again {
		v.log.Warn("starting the child again", "service", v.name, "after", next.after)
		v.observer.Restarted(v.name)
		return over, next.after
	}
	v.giveUp(next.why)
	return over, 0
}

// giveUp gives the service to another node.
func (v *service) giveUp(why string) {
	v.relapses.gaveUp(time.Now(), v.Restart.RejoinAfter)
	v.log.Warn("giving the service to another node", "service", v.name, "why", why)
}

// held tells whether the service is paused.
func (v *service) held() bool {
	v.news.mu.Lock()
	defer v.news.mu.Unlock()
	return v.news.wishes.Control.Paused
}

// empty kills what is left of the tree, and goes on until that is proved or the term has to end.
func (v *service) empty(ctx context.Context, tree Tree) error {
	for {
		bounded, cancel := context.WithTimeout(ctx, proofPatience)
		err := tree.Kill(bounded)
		cancel()
		if err == nil || ctx.Err() != nil {
			return err
		}
		v.log.Error("what the child left behind does not die", "service", v.name, "error", err)
		v.ails(unproved, unprovedDeath(err))
	}
}
