package guard

import "time"

// watchdog is a device that a guardian feeds. Its twin feeds it, too, each by itself.
type watchdog struct {
	timeout time.Duration
	fed     time.Duration // when it was fed last
}

// keep takes over a device that came with a message.
func (g *Guardian) keep(m *Message) error {
	if m.Grace <= 0 {
		return errNoWatchdog
	}
	if err := g.hands.Take(m); err != nil {
		return err
	}
	g.watchdog = &watchdog{timeout: m.Grace}
	return nil
}

// letGo gives the device up. If a tree that it guards may be alive, the device goes on counting, and this guardian does not feed it. P3: so
// it does where this guardian does not know all trees.
func (g *Guardian) letGo() {
	if g.watchdog == nil {
		return
	}
	_, bound := g.leases.limit()
	g.hands.LetGo(!bound && g.told)
	g.watchdog = nil
}

// limit is when the machine must have been reset, unless the lease is extended or the trees are proved dead before. bound is false if no
// live tree needs it.
func (all leases) limit() (at time.Duration, bound bool) {
	for _, l := range all {
		for _, t := range l.trees {
			if by := l.deadline + t.after; t.armed && !t.dead && (!bound || by < at) {
				at, bound = by, true
			}
		}
	}
	return at, bound
}

// feed feeds the device when that is due, and returns when to look again; zero means at the next event.
//
// P3: a feed keeps the reset away for a whole timeout, so none comes later than that before the limit. The last one comes as
// late as it can be relied on, for a tree that is killed at its lease's end to be proved dead before the limit. Who does not know all trees
// does not know the limit.
func (g *Guardian) feed(now time.Duration) time.Duration {
	if g.watchdog == nil || !g.told {
		return 0
	}
	limit, bound := g.leases.limit()
	last := limit - g.watchdog.timeout
	if bound && now > last {
		return 0
	}
	next := func(fed time.Duration) time.Duration {
		due, close := fed+g.watchdog.timeout/4, last-g.watchdog.timeout/64
		if bound && close > fed {
			return min(due, close)
		}
		return due
	}
	due := next(g.watchdog.fed)
	if now < due {
		return due
	}
	g.hands.Feed()
	g.watchdog.fed = now
	return next(now)
}
