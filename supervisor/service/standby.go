package service

import (
	"context"
	"errors"
	"time"

	"understudy/election"
	"understudy/supervisor/service/role"
	"understudy/supervisor/wait"
)

// lockWait is what a candidate knows of the lock that it waits for.
type lockWait struct {
	opening election.Opening
	wishes  election.Intents
	polite  time.Time // until when a preferred node is left to take a free lock
}

// StandBy returns when the lock may be had.
func (c *candidate) StandBy(ctx context.Context) role.Event {
	defer c.stirAfterDemotion()()
	for {
		bar, e, over := c.look(ctx)
		switch {
		case over:
			return e
		case bar != role.NoBar:
			return role.Event{Kind: role.HeldBack, Bar: bar}
		case c.v.state.Bar != role.NoBar: // of a former candidate
			return role.Event{Kind: role.Allowed}
		}
		switch free, e, over := c.lockFree(ctx); {
		case over:
			return e
		case !free:
		case c.polite():
			return role.Event{Kind: role.LeftToElse}
		default:
			return role.Event{Kind: role.LockFree}
		}
	}
}

// WaitAllowed returns when nothing keeps this node from being a candidate any more. What may be ours without our knowing is looked at
// all the same.
func (c *candidate) WaitAllowed(ctx context.Context) role.Event {
	v := c.v
	defer c.stirAfterDemotion()()
	for {
		bar, e, over := c.look(ctx)
		switch {
		case over:
			return e
		case bar == role.NoBar:
			return role.Event{Kind: role.Allowed}
		case bar != v.state.Bar:
			return role.Event{Kind: role.HeldBack, Bar: bar}
		}
		if c.cand.Unsure() {
			switch free, e, over := c.lockFree(ctx); {
			case over:
				return e
			case free && c.wait.opening.Ours():
				return role.Event{Kind: role.LockFree}
			}
			continue
		}
		if !bar.Unknown() {
			if err := c.standBack(ctx); err != nil {
				return c.failed(err)
			}
		}
		select {
		case <-v.inbox.stir:
		case <-ctx.Done():
			return c.failed(context.Cause(ctx))
		}
	}
}

// standBack takes back what a candidate has that may not be one now.
func (c *candidate) standBack(ctx context.Context) error {
	if err := prefer(ctx, c.cand, 0); err != nil {
		return err
	}
	if err := c.cand.Withdraw(ctx); err != nil && ctx.Err() == nil {
		c.v.log.Debug("cannot leave the queue", "service", c.v.name, "error", err)
	}
	return nil
}

// look takes up what has changed, and tells what keeps this node from being a candidate, or why another one has to be made.
func (c *candidate) look(ctx context.Context) (bar role.Bar, e role.Event, over bool) {
	v := c.v
	if v.inbox.isErased() {
		return bar, c.failed(election.ErrDeleted), true
	}
	if v.takeUp() {
		v.say()
	}
	if v.conf.order() != c.cand.Mode() && !c.cand.Unsure() {
		v.log.Info("standing in another kind of election", "service", v.name, "election", v.conf.order())
		if err := errors.Join(c.cand.Withdraw(ctx), c.cand.Prefer(ctx, 0)); err != nil { // P6: others of a queue would wait for us
			return bar, c.failed(err), true
		}
		return bar, role.Event{Kind: role.Reordered}, true
	}
	wishes, bar, why := v.bar()
	c.wait.wishes = wishes
	switch {
	case bar.Unknown() && v.state.Bar == role.Paused:
		bar = role.Paused // until it is known
	case !bar.Unknown() && (bar == role.NoBar || !c.cand.Unsure()):
		v.tellBar(bar, why)
	}
	if bar != role.NoBar {
		return bar, e, false
	}
	if err := prefer(ctx, c.cand, v.preference()); err != nil {
		return bar, c.failed(err), true
	}
	v.tell()
	if s := wishes.Control.Switchover; s != nil && s.To == v.node.Self.Node {
		c.cand.Advance(election.First)
	}
	return bar, e, false
}

// lockFree waits for the lock, and reports free when it may be had; it is not when there is news to be looked at first.
func (c *candidate) lockFree(ctx context.Context) (free bool, e role.Event, over bool) {
	err := c.v.inbox.untilStirred(ctx, func(ctx context.Context) (err error) {
		asked := time.Now()
		if c.wait.opening, err = c.cand.Wait(ctx); time.Since(asked) > parting {
			c.wait.polite = time.Time{} // somebody else had it meanwhile
		}
		return err
	})
	if errors.Is(err, errStirred) {
		return false, e, false
	} else if err != nil {
		return false, c.failed(err), true
	}
	return true, e, false
}

// polite tells whether a free lock is left to another node for now.
func (c *candidate) polite() bool {
	v := c.v
	wait := deference(v.node.Self.Node, v.preference(), c.wait.wishes)
	if wait > 0 && !c.wait.opening.Ours() {
		if c.wait.polite.IsZero() {
			c.wait.polite = time.Now().Add(wait)
		}
		if time.Until(c.wait.polite) > 0 {
			return true
		}
		v.mem.rivalBy = time.Now().Add(c.s.Timeout())
	}
	c.wait.polite = time.Time{}
	return false
}

// Defer leaves a free lock to another node for a while, or until there is news.
func (c *candidate) Defer(ctx context.Context) role.Event {
	defer c.stirAfterDemotion()()
	err := c.v.inbox.untilStirred(ctx, func(ctx context.Context) error {
		wait.For(ctx, time.Until(c.wait.polite))
		return context.Cause(ctx)
	})
	if err != nil && !errors.Is(err, errStirred) {
		return c.failed(err)
	}
	return role.Event{Kind: role.Waited}
}

// Claim takes the lock.
func (c *candidate) Claim(ctx context.Context) role.Event {
	v := c.v
	crumb := election.BreadCrumb{GuardianPid: v.node.Guard().Pid(), Tree: idOf(c.tree), Agent: v.view.agent}
	claim, err := c.cand.Take(ctx, c.wait.opening.Under(c.wait.wishes), crumb)
	switch {
	case err != nil:
		return c.failed(err)
	case claim == nil:
		return role.Event{Kind: role.Taken}
	}
	v.mem.failure, v.mem.token = "", claim.Token
	v.follow()
	v.engage()
	c.term.begin(claim)
	return role.Event{Kind: role.Won}
}

// stirAfterDemotion has the service look again when this node is preferred again, until what it returns is called.
func (c *candidate) stirAfterDemotion() (stop func()) {
	v := c.v
	left := time.Until(v.mem.relapses.until)
	if left <= 0 || v.demotion() == nil {
		return func() {}
	}
	again := time.AfterFunc(left, func() { wait.Poke(v.inbox.stir) })
	return func() { again.Stop() }
}

// prefer tells the preference. What is refused again and again is for another candidate.
func prefer(ctx context.Context, cand *election.Candidate, priority int) error {
	for next := 50 * time.Millisecond; ; next *= 2 {
		err := cand.Prefer(ctx, priority)
		if err == nil || next > time.Second || !wait.For(ctx, next) {
			return err
		}
	}
}

// bar tells what keeps this node from being a candidate, in words too, and under which wishes.
func (v *Service) bar() (w election.Intents, b role.Bar, why string) {
	n := &v.inbox
	n.mu.Lock()
	defer n.mu.Unlock()
	prechecked := len(v.conf.Precheck.Exec) > 0 && !v.forces(n.wishes.Control)
	guarded := v.node.Watchdog != nil && v.node.Watchdog.Required
	switch {
	case !v.conf.Eligible:
		b, why = role.Ineligible, election.NotEligible
	case !n.heeded:
		b = role.Unasked
	case n.wishes.Control.Paused:
		b, why = role.Paused, n.wishes.Control.Words()
	case prechecked && !n.fit.known:
		b = role.Untested
	case prechecked && n.fit.why != "":
		b, why = role.Unfit, "precheck: "+n.fit.why
	case guarded && !n.tamed.known:
		b = role.Untamed
	case guarded && n.tamed.why != "":
		b, why = role.Unarmable, "watchdog: "+n.tamed.why
	}
	return n.wishes, b, why
}
