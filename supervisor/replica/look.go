package replica

import (
	"cmp"
	"context"
	"time"

	"understudy/supervisor/unit"
	"understudy/supervisor/wait"
)

const (
	lookSoon     = 20 * time.Millisecond // while an answer is about to change, and then ever more rarely
	longestPause = 30 * time.Second      // between two attempts to follow
	keepEvery    = time.Second           // how often a position is kept that has grown
)

// looking is what a follower is told, and what it says.
type looking struct {
	c         *Copy
	run       *unit.Run
	active    Active        // the copy that is promoted
	following Active        // the one that it follows
	failed    int           // so often in a row it could not
	refused   string        // why it could not; "": it could
	pause     time.Duration // after a failure
	again     time.Time     // not before that
	kept      time.Time     // when its position was kept
	keptAt    uint64        // what it was
	soon      time.Duration // after which it is looked at again while an answer is about to change
}

// keepLooking looks at the follower, and has it follow whoever is promoted, until ctx ends.
func (c *Copy) keepLooking(ctx context.Context, run *unit.Run) {
	l := &looking{c: c, run: run}
	for ctx.Err() == nil {
		next := l.interval()
		if l.look(ctx) {
			l.soon = 0
		} else {
			l.soon = min(max(2*l.soon, lookSoon), next)
			next = l.soon
		}
		timer := time.NewTimer(next)
		select {
		case <-timer.C:
		case <-c.look:
			l.soon = 0
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

func (l *looking) interval() time.Duration {
	l.c.mu.Lock()
	defer l.c.mu.Unlock()
	return l.c.conf.Replicated.Interval
}

// look asks the follower once, and reports whether it is as it should be.
func (l *looking) look(ctx context.Context) bool {
	c := l.c
	c.mu.Lock()
	active := c.active
	a := c.asking(active)
	unprepared := c.diverges(active)
	c.mu.Unlock()
	if unprepared {
		l.run.End(errDiverges)
		return false
	}
	role, why := a.role(ctx)
	if ctx.Err() != nil {
		return false
	}
	if role == Primary { // P1
		l.run.End(errPrimary)
	}
	ready := wait.Closed(l.run.Ready())
	if l.active != active { // what was said of another one means nothing any more
		l.active, l.failed, l.refused, l.pause, l.again = active, 0, "", 0, time.Time{}
	}
	alone := active.Node == "" || active.Node == c.cfg.Node
	if role != Unknown || ready {
		c.show(func(s *Shown) {
			s.Role = role
			if role != Follower || !ready || alone || l.refused != "" { // else what it says of its position counts
				s.Why = cmp.Or(why, l.refused)
			}
		})
	}
	switch {
	case role != Follower || !ready:
		return false
	case alone:
		return true
	}
	return (l.following == active || l.follow(ctx, a, active)) && l.inSync(ctx, a, active)
}

// follow has the copy follow another one.
func (l *looking) follow(ctx context.Context, a asking, active Active) bool {
	c := l.c
	if time.Now().Before(l.again) {
		return false
	}
	err := c.keepState(func(s *state) { s.heads(active) })
	kept := err == nil
	if kept {
		err = a.order(ctx, a.conf.Replicated.Follow)
	}
	if ctx.Err() != nil {
		return false
	}
	if err != nil {
		l.pause = min(max(2*l.pause, a.conf.Replicated.Interval), longestPause)
		l.again = time.Now().Add(l.pause)
		l.refused = "follow: " + err.Error()
		c.show(func(s *Shown) { s.Why, s.Position = l.refused, nil })
		c.log.Warn("this node's copy cannot follow the primary, trying again", "active", active.Node, "error", err, "after", l.pause)
		if kept {
			l.failed++
		}
		if c.gaveUpFollowing(l.failed) {
			l.run.End(errCannotFollow)
		}
		return false
	}
	l.following, l.failed, l.refused, l.pause, l.again = active, 0, "", 0, time.Time{}
	c.log.Info("this node's copy follows the primary", "active", active.Node, "address", active.Address, "token", active.Token)
	return true
}

// inSync reports whether the copy has the data of the one that it follows.
func (l *looking) inSync(ctx context.Context, a asking, active Active) bool {
	c := l.c
	p, _, why := a.position(ctx)
	if ctx.Err() != nil {
		return false
	}
	c.show(func(s *Shown) { s.Position, s.Why = p, why })
	if p == nil {
		return false
	}
	c.isAt(active.Token, *p)
	c.mu.Lock()
	c.asked = time.Now()
	kept, current := c.state, c.active == active
	c.mending = mending{}
	c.mu.Unlock()
	if !current || kept.has(active) && !kept.Diverges && kept.Torn == "" && (*p <= l.keptAt || time.Since(l.kept) < keepEvery) {
		c.reached(*p)
		return current
	}
	if err := c.keepState(func(s *state) { s.Followed, s.Toward, s.Position, s.Diverges, s.Torn = active.Token, 0, *p, false, "" }); err != nil {
		c.show(func(s *Shown) { s.Why = err.Error() })
		c.log.Warn("cannot save which primary this node's copy has followed", "error", err)
		return false
	}
	l.kept, l.keptAt = time.Now(), *p
	if kept.Followed != active.Token || kept.Toward != 0 {
		c.log.Info("this node's copy has the primary's data", "active", active.Node, "token", active.Token, "position", *p)
	}
	return true
}
