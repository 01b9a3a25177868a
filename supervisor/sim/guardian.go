package sim

import (
	"time"

	"understudy/fencing/agent"
	"understudy/supervisor/guard"
)

// guardian is a guardian process, which runs the real one's Ward over the simulated world. World.mu guards it.
type guardian struct {
	*gate
	ward     *guard.Ward
	w        *world
	host     *host
	of       *keeper // the supervisor's end
	node     *node
	boot     int
	index    int
	birth    int              // of all on the host
	number   uint64           // the pair's
	dead     bool             // killed: it does nothing any more
	fallen   bool             // its end can be seen
	blind    time.Time        // until then it can open nothing
	inbox    []*guard.Message // in its socket, which takes so many
	unsent   []*guard.Message // what that did not take yet
	said     []*guard.Message // that the supervisor has not heard
	hungUp   bool             // the supervisor is gone, which it may not have noticed
	orphaned bool             // it has
	twin     *guardian
	closed   []guard.Closed // that it has not taken in
	alarm    *time.Timer
	rings    time.Duration // when it does, on the host's clock; 0: it is not set
	desk     *agent.Server // it answers for its supervisor; nil: nobody has asked it
	heard    []*conn       // by it
	watchdog *device       // nil: there is none, or none that is needed
	awake    time.Time     // since when
}

func newGuardian(of *keeper, index int) *guardian {
	n := of.inc.node
	g := &guardian{
		gate: newGate(n.w.thawJitter(n.host.rng)), w: n.w, host: n.host, of: of, node: n, boot: n.host.boots, index: index,
		birth: n.host.pid(), awake: time.Now(),
	}
	g.ward = guard.NewWard(guard.Config{Index: index, Grace: twinGrace}, hands{g})
	n.host.beings[g] = struct{}{}
	return g
}

// room is how many messages a guardian's socket takes.
const room = 6

// deliver puts a message into the guardian's socket, as soon as that takes it.
func (g *guardian) deliver(m *guard.Message) {
	if g.dead {
		return
	}
	if len(g.unsent) > 0 || len(g.inbox) >= room {
		if g.unsent = append(g.unsent, m); len(g.unsent) == 1 {
			g.of.clogged(g, true)
		}
		return
	}
	g.inbox = append(g.inbox, m)
	g.wake()
}

// unclog sends what did not go before.
func (g *guardian) unclog() {
	for len(g.unsent) > 0 && len(g.inbox) < room && !g.dead {
		m := g.unsent[0]
		g.unsent = g.unsent[1:]
		g.inbox = append(g.inbox, m)
		g.wake()
	}
	g.of.clogged(g, len(g.unsent) > 0)
}

// orphan is the supervisor's end of the socket being closed.
func (g *guardian) orphan() {
	g.hungUp = true
	g.wake()
}

// die is SIGKILL for a guardian: it does nothing any more. On a busy machine it takes a while until that can be seen.
func (g *guardian) die() {
	if g.dead {
		return
	}
	g.dead = true
	g.kill()
	if g.alarm != nil {
		g.alarm.Stop()
	}
	g.w.check.unwatch(g)
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
	g.node.dog.close(g)
	g.w.net.sever(g.gate, g.host.on && g.boot == g.host.boots)
	for _, c := range g.heard {
		c.shut(g.host.on && g.boot == g.host.boots)
	}
	g.of.inc.do(func() {
		g.w.after(0, func() {
			g.listenTo()
			g.of.lost(g)
		})
	})
	for _, other := range g.host.guardians() {
		if other.twin == g {
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

// stirred is a change in a tree that the guardian may be killing.
func (g *guardian) stirred(t *tree) {
	for b := range g.ward.Dying() {
		if b.(heldTree).tree == t {
			g.wake()
			return
		}
	}
}

// wake lets the guardian take a turn, if it can.
func (g *guardian) wake() {
	if g.dead || !g.running() {
		return
	}
	now := g.host.now()
	for len(g.inbox) > 0 && !g.orphaned {
		m := g.inbox[0]
		g.inbox = g.inbox[1:]
		g.ward.Hear(now, m)
	}
	if len(g.unsent) > 0 {
		g.of.inc.do(func() { g.w.after(time.Millisecond, g.unclog) })
	}
	g.orphaned = g.orphaned || g.hungUp
	closed := g.closed
	g.closed = nil
	next, over := g.ward.Turn(now, guard.Events{Closed: closed, TwinGone: g.twin != nil && g.twin.fallen, Orphaned: g.orphaned})
	if over {
		g.die()
		return
	}
	g.ringAt(next)
}

// ringAt sets the alarm. One that rings earlier is left, and set again then: most deadlines move before they come.
func (g *guardian) ringAt(next time.Duration) {
	if next == 0 || g.rings > 0 && g.rings <= next {
		return
	}
	g.rings = next
	if g.alarm != nil {
		g.alarm.Reset(g.host.until(next))
		return
	}
	g.alarm = g.w.after(g.host.until(next), func() {
		g.rings = 0
		g.wake()
	})
}
