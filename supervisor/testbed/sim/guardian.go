package sim

import (
	"time"

	"understudy/supervisor/guard"
)

// guardian is a guardian process, which runs the real one's Ward over the simulated world. World.mu guards it.
type guardian struct {
	*gate
	decider *guard.Guardian
	w       *world
	host    *host
	of      *twins // the supervisor's end
	node    *node
	index   int
	birth   int    // of all on the host
	number  uint64 // the pair's
	fallen  bool   // its end can be seen
	former  bool   // its supervisor is of a later revision
	hands   hands
	line    line
	alarm   alarm
	awake   time.Time // since when
}

func newGuardian(of *twins, index int) *guardian {
	n := of.inc.node
	g := &guardian{
		gate: newGate(n.w.thawJitter(n.host.rng)), w: n.w, host: n.host, of: of, node: n, index: index,
		birth: n.host.pid(), awake: time.Now(),
	}
	g.hands.guardian = g
	g.decider = guard.NewGuardian(guard.Config{Index: index, Grace: twinGrace}, &g.hands)
	n.host.beings[g] = struct{}{}
	return g
}

// deliver puts a message into the guardian's socket, as soon as that takes it.
func (g *guardian) deliver(m *guard.Message) {
	if !g.alive() {
		return
	}
	if g.line.put(m) {
		g.wake()
	}
}

// unclog sends what did not go before.
func (g *guardian) unclog() {
	for g.alive() && g.line.refill() {
		g.wake()
	}
}

// orphan is the supervisor's end of the socket being closed.
func (g *guardian) orphan() {
	g.late(g.lag(), func() {
		g.line.hungUp = true
		g.wake()
	})
}

// die is SIGKILL for a guardian: it does nothing any more. On a busy machine it takes a while until that can be seen.
func (g *guardian) die() {
	if !g.alive() {
		return
	}
	g.kill()
	g.alarm.stop()
	g.w.check.orphans.unwatch(g)
	if d := drawn(g.host.lags, 400*time.Millisecond) - 200*time.Millisecond; d > 0 && g.host.on {
		g.w.after(d, g.fall)
		return
	}
	g.fall()
}

// fall is its end as others see it.
func (g *guardian) fall() {
	if g.fallen {
		return
	}
	g.fallen = true
	delete(g.host.beings, g)
	g.node.watchdog.close(g)
	there := g.host.on && g.of.inc.boot == g.host.boots
	g.w.net.sever(g.gate, there)
	g.of.inc.do(func() {
		g.w.after(0, func() {
			g.listenTo()
			g.of.lost(g)
		})
	})
	for _, other := range g.host.guardians() {
		if other.hands.twin == g {
			other.wake()
		}
	}
}

// halt stops the guardian for a while. World.mu is held.
func (g *guardian) halt(d time.Duration) {
	g.w.say("%s: guardian %d freezes for %v", g.node.name, g.index+1, d)
	g.freeze()
	g.w.after(d, func() {
		g.w.say("%s: guardian %d thaws", g.node.name, g.index+1)
		g.awake = time.Now()
		g.thaw()
		g.wake()
	})
}

// treeChanged is a change in a tree that the guardian may be killing.
func (g *guardian) treeChanged(t *tree) {
	for b := range g.decider.Dying() {
		if b.(interface{ of() *tree }).of() == t {
			g.late(g.lag(), g.wake)
			return
		}
	}
}

// wake lets the guardian take a turn, if it can.
func (g *guardian) wake() {
	if !g.running() {
		return
	}
	now := g.host.now()
	for m := g.line.next(); m != nil; m = g.line.next() {
		g.decider.Hear(now, g.read(m))
	}
	if len(g.line.unsent) > 0 {
		g.of.inc.do(func() { g.w.after(time.Millisecond, g.unclog) })
	}
	g.line.orphaned = g.line.orphaned || g.line.hungUp
	next, over := g.decider.Turn(now, guard.Events{Closed: g.hands.haveClosed(), Undone: g.hands.haveUndone(), TwinGone: g.hands.alone(), Orphaned: g.line.orphaned})
	if over {
		g.die()
		return
	}
	g.alarm.set(g, next)
}
