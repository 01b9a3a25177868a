package service

import (
	"context"
	"errors"
	"time"

	"understudy/election"
	"understudy/supervisor/service/role"
	"understudy/supervisor/wait"
)

// StandBy returns when the lock is free.
func (t *stay) StandBy(ctx context.Context) role.Event {
	defer t.v.wakeAfterDemotion()()
	for {
		obstacle, e, over := t.applyNews(ctx)
		switch {
		case over:
			return e
		case obstacle != role.NoObstacle:
			return role.Event{Kind: role.HeldBack, Obstacle: obstacle}
		case t.v.state.Obstacle != role.NoObstacle: // a previous candidate's obstacle
			return role.Event{Kind: role.Allowed}
		}
		switch free, e, over := t.waitLockFree(ctx); {
		case over:
			return e
		case !free:
		case t.v.copy.compared():
			if !t.candidacy.leavesToOtherCopy() {
				return role.Event{Kind: role.LockFree}
			}
			return role.Event{Kind: role.LeftToOther}
		case t.candidacy.leavesToOther():
			return role.Event{Kind: role.LeftToOther}
		default:
			return role.Event{Kind: role.LockFree}
		}
	}
}

// WaitAllowed returns when nothing bars this node any more, or when it has the lock already without knowing.
func (t *stay) WaitAllowed(ctx context.Context) role.Event {
	v := t.v
	defer v.wakeAfterDemotion()()
	for {
		obstacle, e, over := t.applyNews(ctx)
		switch {
		case over:
			return e
		case obstacle == role.NoObstacle:
			return role.Event{Kind: role.Allowed}
		case obstacle != v.state.Obstacle:
			return role.Event{Kind: role.HeldBack, Obstacle: obstacle}
		}
		if t.candidacy.cand.MayHoldLock() {
			switch free, e, over := t.waitLockFree(ctx); {
			case over:
				return e
			case free && t.candidacy.opening.Ours():
				return role.Event{Kind: role.LockFree}
			}
			continue
		}
		if !obstacle.Unknown() {
			if err := t.candidacy.standBack(ctx); err != nil {
				return t.failed(err)
			}
		}
		err := v.inbox.news.unless(ctx, func(ctx context.Context) error {
			if obstacle == role.Paused { // when the active node is lost now, that is to be known
				_ = t.candidacy.cand.WatchLock(ctx) // its end shows in ctx
			}
			<-ctx.Done()
			return context.Cause(ctx)
		})
		if !errors.Is(err, errNews) {
			return t.failed(err)
		}
	}
}

// standBack deletes this node's preference and its place in the queue.
func (c *candidacy) standBack(ctx context.Context) error {
	if err := prefer(ctx, c.cand, 0); err != nil {
		return err
	}
	if err := c.cand.Withdraw(ctx); err != nil && ctx.Err() == nil {
		c.v.log.Debug("cannot leave the queue", "error", err)
	}
	return nil
}

// applyNews puts changes in force. It returns what keeps this node from being a candidate, or why the candidate must be replaced.
func (t *stay) applyNews(ctx context.Context) (obstacle role.Obstacle, e role.Event, over bool) {
	v := t.v
	if v.inbox.intents.isErased() {
		return obstacle, t.failed(election.ErrDeleted), true
	}
	if v.applyConfig() {
		v.view.announce()
	}
	if v.conf.order() != t.candidacy.cand.Mode() && !t.candidacy.cand.MayHoldLock() {
		v.log.Info("the kind of election has changed", "election", v.conf.order())
		err := errors.Join(t.candidacy.cand.Withdraw(ctx), t.candidacy.cand.Prefer(ctx, 0))
		if err != nil { // P6: the other nodes in a queue would wait for us
			return obstacle, t.failed(err), true
		}
		return obstacle, role.Event{Kind: role.Reordered}, true
	}
	intents, obstacle, why := v.inbox.obstacle(v.conf)
	v.copy.halt(obstacle, intents.Control.Stopped, why)
	obstacle, why = v.copy.obstacle(obstacle, why)
	t.candidacy.intents = intents
	switch {
	case obstacle.Unknown() && v.state.Obstacle == role.Paused:
		obstacle = role.Paused // until the orders are known
	case !obstacle.Unknown() && (obstacle == role.NoObstacle || !t.candidacy.cand.MayHoldLock()):
		v.view.showObstacle(obstacle, why)
	}
	if obstacle != role.NoObstacle {
		if !obstacle.Unknown() {
			v.conf.Wait.tried()
		}
		return obstacle, e, false
	}
	priority := v.mem.preference.priority(time.Now())
	if cold, _ := v.copy.cold(); cold != "" {
		priority = min(priority, 0)
	}
	err := prefer(ctx, t.candidacy.cand, priority)
	if err != nil {
		return obstacle, t.failed(err), true
	}
	if v.copy != nil && v.copy.judged().vacancy == 0 { // somebody is promoted
		v.view.unpromoted = ""
	}
	v.view.announceChange()
	if s := intents.Control.Switchover; s != nil && s.To == v.node.Self.Node {
		t.candidacy.cand.Advance(election.First)
	}
	return obstacle, e, false
}

// waitLockFree waits until the lock is free, or until there is news to look at first.
func (t *stay) waitLockFree(ctx context.Context) (free bool, e role.Event, over bool) {
	err := t.v.inbox.news.unless(ctx, func(ctx context.Context) (err error) {
		asked := time.Now()
		t.candidacy.opening, err = t.candidacy.cand.Wait(ctx)
		if time.Since(asked) > graceForAny {
			t.candidacy.waits = time.Time{} // another node had the lock meanwhile
		}
		return err
	})
	if errors.Is(err, errNews) {
		return false, e, false
	} else if err != nil {
		return false, t.failed(err), true
	}
	return true, e, false
}

// leavesToOther reports whether this node leaves a free lock to another one for now.
func (c *candidacy) leavesToOther() bool {
	v := c.v
	grace := v.mem.preference.graceForOthers(time.Now(), c.intents)
	if cold, _ := v.copy.cold(); cold != "" {
		grace = graceForAny
	}
	patience := grace
	if v.conf.Spread != "" && v.node.Spread.crowded(v.name, v.conf.Spread) {
		patience = max(patience, graceForPreferred)
	}
	// It could not start the program yet, and whoever runs it may want its lock back.
	if bound := v.node.Promises.Bound(v.name); bound > 0 && bound > v.node.Machine.Now() {
		patience = max(grace, election.GoneAfter(c.s.LeaseLength()))
	}
	if patience > 0 && !c.opening.Ours() {
		if c.waits.IsZero() {
			c.waits = time.Now().Add(patience)
		}
		if time.Until(c.waits) > 0 {
			return true
		}
		if grace > 0 {
			v.mem.preference.absences.gaveUp(time.Now(), 2*c.s.Longest())
		}
	}
	c.waits = time.Time{}
	return false
}

// Defer leaves a free lock to another node for a while, or until there is news.
func (t *stay) Defer(ctx context.Context) role.Event {
	defer t.v.wakeAfterDemotion()()
	err := t.v.inbox.news.unless(ctx, func(ctx context.Context) error {
		wait.For(ctx, time.Until(t.candidacy.waits))
		return context.Cause(ctx)
	})
	if err != nil && !errors.Is(err, errNews) {
		return t.failed(err)
	}
	return role.Event{Kind: role.Waited}
}

// crumb is the breadcrumb of a claim. What survives a boot is listed later: a machine on which nothing is noted of it proves nothing.
func (c *candidacy) crumb() election.BreadCrumb {
	v := c.v
	crumb := election.BreadCrumb{GuardianPid: v.node.Guard().Pid(), Tree: idOf(c.tree), Agent: v.view.agent}
	crumb.Effects = effectsOf(v.conf.Service)
	crumb.Survive = nil
	return crumb
}

// Claim takes the lock.
func (t *stay) Claim(ctx context.Context) role.Event {
	v := t.v
	if !v.conf.Wait.claim() {
		return role.Event{Kind: role.StayOver}
	}
	crumb := t.candidacy.crumb()
	claim, err := t.candidacy.cand.Take(ctx, t.candidacy.opening.Under(t.candidacy.intents), crumb)
	switch {
	case err != nil:
		return t.failed(err)
	case claim == nil:
		return role.Event{Kind: role.Taken}
	}
	v.mem.lastTerm.claimed(claim.Token)
	v.inbox.intents.follow()
	v.engage()
	t.beginTerm(claim, crumb.Effects)
	t.term.promotion.copyNotTaken = v.copy != nil
	return role.Event{Kind: role.Won}
}

// wakeAfterDemotion wakes the service when this node is preferred again, until stop is called.
func (v *Service) wakeAfterDemotion() (stop func()) {
	left := v.mem.preference.demotedFor(time.Now())
	if left <= 0 {
		return func() {}
	}
	again := time.AfterFunc(left, v.inbox.news.wake)
	return func() { again.Stop() }
}

// prefer writes the preference. It gives up after some attempts; then a new candidate is made.
func prefer(ctx context.Context, cand *election.Candidate, priority int) error {
	for next := 50 * time.Millisecond; ; next *= 2 {
		err := cand.Prefer(ctx, priority)
		if err == nil || next > time.Second || !wait.For(ctx, next) {
			return err
		}
	}
}
