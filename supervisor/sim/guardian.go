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
	birth    int    // of all on the host
	number   uint64 // the pair's
	dead     bool
	inbox    []*guard.Message
	hungUp   bool // the supervisor is gone, which it may not have noticed
	orphaned bool // it has
	twin     *guardian
	closed   []guard.Closed // that it has not taken in
	alarm    *time.Timer
	rings    time.Duration // when it does, on the host's clock; 0: it is not set
	desk     *agent.Server // it answers for its supervisor; nil: nobody has asked it
	heard    []*conn       // by it
	dog      *device       // nil: there is none, or none that is needed
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

func (g *guardian) gone() bool {
	g.w.mu.Lock()
	defer g.w.mu.Unlock()
	return g.dead
}

// deliver puts a message into the guardian's socket.
func (g *guardian) deliver(m *guard.Message) {
	if g.dead {
		return
	}
	g.inbox = append(g.inbox, m)
	g.wake()
}

// orphan is the supervisor's end of the socket being closed.
func (g *guardian) orphan() {
	g.hungUp = true
	g.wake()
}

// die is SIGKILL for a guardian.
func (g *guardian) die() {
	if g.dead {
		return
	}
	g.dead = true
	g.kill()
	if g.alarm != nil {
		g.alarm.Stop()
	}
	delete(g.host.beings, g)
	g.node.dog.close(g)
	g.w.net.sever(g.gate, g.host.on && g.boot == g.host.boots)
	for _, c := range g.heard {
		c.shut(g.host.on && g.boot == g.host.boots)
	}
	g.of.inc.do(func() { g.w.after(0, func() { g.of.lost(g) }) })
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
	for b := range g.ward.Hunted() {
		if b.(prey).tree == t {
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
	g.orphaned = g.orphaned || g.hungUp
	closed := g.closed
	g.closed = nil
	next, over := g.ward.Turn(now, guard.Events{Closed: closed, TwinGone: g.twin != nil && g.twin.dead, Orphaned: g.orphaned})
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
