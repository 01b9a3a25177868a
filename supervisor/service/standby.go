package service

import (
	"context"
	"errors"
	"time"

	"understudy/election"
	"understudy/supervisor/service/role"
	"understudy/supervisor/wait"
)

// lockWait is a candidate's knowledge of the lock that it waits for.
type lockWait struct {
	opening election.Opening
	intents election.Intents
	polite  time.Time // until then, leave a free lock to a preferred node
}

// StandBy returns when the lock is free.
func (c *candidate) StandBy(ctx context.Context) role.Event {
	defer c.stirAfterDemotion()()
	for {
		bar, e, over := c.look(ctx)
		switch {
		case over:
			return e
		case bar != role.NoBar:
			return role.Event{Kind: role.HeldBack, Bar: bar}
		case c.v.state.Bar != role.NoBar: // a former candidate's bar
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

// WaitAllowed returns when nothing bars this node any more, or when it has the lock already without knowing.
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
		case <-v.inbox.news:
		case <-ctx.Done():
			return c.failed(context.Cause(ctx))
		}
	}
}

// standBack deletes this node's preference and its place in the queue.
func (c *candidate) standBack(ctx context.Context) error {
	if err := prefer(ctx, c.cand, 0); err != nil {
		return err
	}
	if err := c.cand.Withdraw(ctx); err != nil && ctx.Err() == nil {
		c.v.log.Debug("cannot leave the queue", "error", err)
	}
	return nil
}

// look puts changes in force. It returns the bar that keeps this node from being a candidate, or why the candidate must be replaced.
func (c *candidate) look(ctx context.Context) (bar role.Bar, e role.Event, over bool) {
	v := c.v
	if v.inbox.intents.isErased() {
		return bar, c.failed(election.ErrDeleted), true
	}
	if v.takeUp() {
		v.view.say()
	}
	if v.conf.order() != c.cand.Mode() && !c.cand.Unsure() {
		v.log.Info("the kind of election has changed", "election", v.conf.order())
		if err := errors.Join(c.cand.Withdraw(ctx), c.cand.Prefer(ctx, 0)); err != nil { // P6: the other nodes in a queue would wait for us
			return bar, c.failed(err), true
		}
		return bar, role.Event{Kind: role.Reordered}, true
	}
	intents, bar, why := v.inbox.bar(v.conf)
	c.wait.intents = intents
	switch {
	case bar.Unknown() && v.state.Bar == role.Paused:
		bar = role.Paused // until the orders are known
	case !bar.Unknown() && (bar == role.NoBar || !c.cand.Unsure()):
		v.view.tellBar(bar, why)
	}
	if bar != role.NoBar {
		return bar, e, false
	}
	if err := prefer(ctx, c.cand, v.mem.preference.priority(time.Now())); err != nil {
		return bar, c.failed(err), true
	}
	v.view.tell()
	if s := intents.Control.Switchover; s != nil && s.To == v.node.Self.Node {
		c.cand.Advance(election.First)
	}
	return bar, e, false
}

// lockFree waits until the lock is free, or until there is news to look at first.
func (c *candidate) lockFree(ctx context.Context) (free bool, e role.Event, over bool) {
	err := c.v.inbox.news.unless(ctx, func(ctx context.Context) (err error) {
		asked := time.Now()
		if c.wait.opening, err = c.cand.Wait(ctx); time.Since(asked) > parting {
			c.wait.polite = time.Time{} // another node had the lock meanwhile
		}
		return err
	})
	if errors.Is(err, errNews) {
		return false, e, false
	} else if err != nil {
		return false, c.failed(err), true
	}
	return true, e, false
}

// polite reports whether this node leaves a free lock to another one for now.
func (c *candidate) polite() bool {
	v := c.v
	wait := v.mem.preference.deference(time.Now(), c.wait.intents)
	if wait > 0 && !c.wait.opening.Ours() {
		if c.wait.polite.IsZero() {
			c.wait.polite = time.Now().Add(wait)
		}
		if time.Until(c.wait.polite) > 0 {
			return true
		}
		v.mem.preference.outwaited(time.Now(), c.s.Timeout())
	}
	c.wait.polite = time.Time{}
	return false
}

// Defer leaves a free lock to another node for a while, or until there is news.
func (c *candidate) Defer(ctx context.Context) role.Event {
	defer c.stirAfterDemotion()()
	err := c.v.inbox.news.unless(ctx, func(ctx context.Context) error {
		wait.For(ctx, time.Until(c.wait.polite))
		return context.Cause(ctx)
	})
	if err != nil && !errors.Is(err, errNews) {
		return c.failed(err)
	}
	return role.Event{Kind: role.Waited}
}

// Claim takes the lock.
func (c *candidate) Claim(ctx context.Context) role.Event {
	v := c.v
	crumb := election.BreadCrumb{GuardianPid: v.node.Guard().Pid(), Tree: idOf(c.tree), Agent: v.view.agent}
	claim, err := c.cand.Take(ctx, c.wait.opening.Under(c.wait.intents), crumb)
	switch {
	case err != nil:
		return c.failed(err)
	case claim == nil:
		return role.Event{Kind: role.Taken}
	}
	v.mem.story.claimed(claim.Token)
	v.inbox.intents.follow()
	v.engagement.begin()
	c.term.begin(claim)
	return role.Event{Kind: role.Won}
}

// stirAfterDemotion wakes the service when this node is preferred again, until stop is called.
func (c *candidate) stirAfterDemotion() (stop func()) {
	left := c.v.mem.preference.demotedFor(time.Now())
	if left <= 0 {
		return func() {}
	}
	again := time.AfterFunc(left, c.v.inbox.news.stir)
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
