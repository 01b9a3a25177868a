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
	c       *Copy
	run     *unit.Run
	active  Active        // the copy that is promoted
	follows failing       // to follow it
	says    failing       // to say what it is
	kept    time.Time     // when its position was kept
	keptAt  uint64        // what it was
	soon    time.Duration // after which it is looked at again while an answer is about to change
}

// failing are failures in a row.
type failing struct {
	times int
	why   string        // "": the last one was none
	pause time.Duration // after a failure
	again time.Time     // not before that
}

// keepLooking looks at the follower, and has it follow whoever is promoted, until ctx ends.
func (c *Copy) keepLooking(ctx context.Context, run *unit.Run) {
	l := &looking{c: c, run: run}
	for ctx.Err() == nil {
		next := l.c.config().Replicated.Interval
		if l.look(ctx) {
			l.soon = 0
		} else {
			l.soon = min(max(2*l.soon, lookSoon), next)
			next = l.soon
		}
		select {
		case <-time.After(next):
		case <-c.look:
			l.soon = 0
		case <-ctx.Done():
		}
	}
}

// look asks the follower once, and reports whether it is as it should be.
func (l *looking) look(ctx context.Context) bool {
	c := l.c
	c.mu.Lock()
	active := c.active
	a := c.asking(active)
	unprepared, following := c.mends.diverges(active), c.following
	c.mu.Unlock()
	if unprepared {
		l.run.End(errDiverges)
		return false
	}
	if l.run.First() == nil { // a file of the previous run would be asked, and not the program
		return false
	}
	role, why := a.role(ctx)
	if ctx.Err() != nil {
		return false
	}
	if !a.tells() {
		return true
	}
	if role == Primary { // P1
		l.run.End(errPrimary)
	}
	ready := wait.Closed(l.run.Ready())
	if l.active != active { // what was said of another one means nothing any more
		l.active, l.follows, l.says = active, failing{}, failing{}
	}
	alone := active.Node == "" || active.Node == c.cfg.Node
	if role != Unknown || ready {
		c.show(func(s *Shown) {
			s.Role = role
			if role != Follower || !ready || alone || l.follows.why != "" { // else what it says of its position counts
				s.Why = cmp.Or(why, l.follows.why)
			}
		})
	}
	if role != Unknown {
		l.says = failing{}
	}
	switch {
	case role == Unknown && ready && !alone && !time.Now().Before(l.says.again):
		l.fails(&l.says, why, true)
		return false
	case role != Follower || !ready:
		return false
	case alone:
		return true
	}
	return (following == active || l.follow(ctx, a, active)) && l.inSync(ctx, a, active)
}

// follow has the copy follow another one.
func (l *looking) follow(ctx context.Context, a asking, active Active) bool {
	c := l.c
	if time.Now().Before(l.follows.again) {
		return false
	}
	err := c.data.keep(func(s *state) { s.heads(active) })
	kept := err == nil
	if kept {
		err = a.order(ctx, a.conf.Replicated.Follow)
	}
	if ctx.Err() != nil {
		return false
	}
	if err != nil {
		l.fails(&l.follows, "follow: "+err.Error(), kept)
		return false
	}
	c.mu.Lock()
	c.following = active
	c.mu.Unlock()
	l.follows = failing{}
	c.log.Info("this node's copy was told to follow the primary", "active", active.Node, "address", active.Address, "token", active.Token)
	return true
}

// fails notes that the copy has failed once more, and ends its run if its data has to be changed first.
func (l *looking) fails(f *failing, why string, counts bool) {
	f.why, f.pause = why, min(max(2*f.pause, l.c.config().Replicated.Interval), longestPause)
	f.again = time.Now().Add(f.pause)
	l.c.show(func(s *Shown) { s.Why, s.Position, s.All = why, nil, false })
	l.c.log.Warn("this node's copy cannot follow the primary, trying again", "active", l.active.Node, "error", why, "after", f.pause)
	if counts {
		f.times++
	}
	if l.c.mends.gaveUp(f.times, why) {
		l.run.End(errCannotFollow)
	}
}

// inSync reports whether the copy has the data of the one that it follows.
func (l *looking) inSync(ctx context.Context, a asking, active Active) bool {
	c := l.c
	said := a.position(ctx)
	p := said.position
	if ctx.Err() != nil {
		return false
	}
	c.show(func(s *Shown) { s.Position, s.All, s.Why = p, said.all, said.why })
	if p == nil {
		return false
	}
	c.noteAt(active.Token, *p)
	kept, _ := c.data.known()
	c.mu.Lock()
	c.asked = time.Now()
	current, failed := c.active == active, c.mends.why != ""
	c.mends.mending = mending{}
	c.mu.Unlock()
	if failed {
		c.cfg.News()
	}
	if !current || kept.has(active) && !kept.Diverges && kept.Torn == "" && (*p <= l.keptAt || time.Since(l.kept) < keepEvery) {
		c.data.reached(*p)
		return current
	}
	if err := c.data.keep(func(s *state) {
		s.Followed, s.Toward, s.Position, s.Diverges, s.Torn = active.Token, 0, *p, false, ""
	}); err != nil {
		c.show(func(s *Shown) { s.Why = err.Error() })
		c.log.Warn("cannot save which primary this node's copy has followed", "error", err)
		return false
	}
	l.kept, l.keptAt = time.Now(), *p
	if kept.Followed != active.Token || kept.Toward != 0 {
		c.log.Info("this node's copy has the primary's data", "active", active.Node, "token", active.Token, "position", *p)
	}
	if o := c.orders.current(); o != nil && o.cloned.Load() {
		c.orders.answerTo(o, nil)
	}
	return true
}
