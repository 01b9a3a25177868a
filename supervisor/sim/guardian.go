package sim

import (
	"errors"
	"slices"
	"time"

	"understudy/fencing/agent"
	"understudy/supervisor/child"
)

// op is an order to a guardian, or what a guardian says.
type op int

const (
	opTwin op = iota
	opHeed
	opBegin
	opExtend
	opShorten
	opEnd
	opFinish
	opTree
	opDrop
	opDog   // feed the watchdog that comes along
	opUndog // let go of it
	opArm   // it is for this tree
	opAck
	opNack
	opEnded
	opFallen // the kernel's word that a guardian is gone
)

type message struct {
	op       op
	seq      uint64
	epoch    uint64
	tree     uint64
	ticket   []byte
	release  []byte
	deadline time.Duration
	why      string
	err      error
	twin     *guardian
	body     *tree
	dog      *device
	after    time.Duration
}

// guardian is a guardian process; it behaves as the real one's loop does. World.mu guards it.
type guardian struct {
	*gate
	w        *world
	host     *host
	of       *guard // the supervisor's end
	node     *node
	boot     int
	index    int
	number   int    // of all on the host
	acked    uint64 // these three are the supervisor's knowledge
	heed     uint64
	live     bool
	dead     bool
	inbox    []*message
	hungUp   bool // the supervisor is gone, which it may not have noticed
	orphaned bool // it has
	twin     *guardian
	alone    time.Duration
	isFirst  bool
	watches  map[uint64]*watch
	alarm    *time.Timer
	rings    time.Duration // when it does, on the host's clock; 0: it is not set
	desk     *agent.Server // it answers for its supervisor; nil: nobody has asked it
	heard    []*conn       // by it
	dog      *device       // nil: there is none, or none that is needed
	fed      time.Duration // when it was fed last
	awake    time.Time     // since when
}

func newGuardian(of *guard, index int) *guardian {
	n := of.inc.node
	g := &guardian{
		gate: newGate(n.w.thawJitter(n.host.rng)), w: n.w, host: n.host, of: of, node: n, boot: n.host.boots, index: index,
		number: n.host.pid(), isFirst: index == 0, watches: map[uint64]*watch{}, awake: time.Now(),
	}
	n.host.beings[g] = struct{}{}
	return g
}

func (g *guardian) gone() bool {
	g.w.mu.Lock()
	defer g.w.mu.Unlock()
	return g.dead
}

// deliver puts a message into the guardian's socket.
func (g *guardian) deliver(m *message) {
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
	g.say(&message{op: opFallen})
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

// say tells the supervisor, who hears it when it is not frozen.
func (g *guardian) say(m *message) {
	if m.op == opAck && g.of.inc.running() { // it changes nothing that the caller may be in the midst of
		g.of.hear(g, m)
		return
	}
	g.of.inc.do(func() { g.w.after(0, func() { g.of.hear(g, m) }) })
}

// stirred is a change in a tree that the guardian may be killing.
func (g *guardian) stirred(t *tree) {
	for _, w := range g.watches {
		if w.ended && w.has(t) {
			g.wake()
			return
		}
	}
}

// wake lets the guardian do what there is to be done, if it can.
func (g *guardian) wake() {
	if g.dead || !g.running() {
		return
	}
	for len(g.inbox) > 0 && !g.orphaned {
		m := g.inbox[0]
		g.inbox = g.inbox[1:]
		if err := g.obey(m); err != nil {
			g.say(&message{op: opNack, seq: m.seq, epoch: m.epoch, err: err})
		} else if m.seq > 0 {
			g.say(&message{op: opAck, seq: m.seq})
		}
	}
	if g.hungUp && !g.orphaned {
		g.orphaned = true
		g.endAll("the supervisor is gone")
	}
	next := g.turn(g.host.now())
	if g.orphaned && len(g.watches) == 0 {
		g.dropDog()
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

// inOrder is the numbers of the leases that it watches.
func (g *guardian) inOrder() (numbers []uint64) {
	for number := range g.watches {
		numbers = append(numbers, number)
	}
	slices.Sort(numbers)
	return numbers
}

// turn does everything that is due and says when to look again.
func (g *guardian) turn(now time.Duration) time.Duration {
	if g.twin != nil && g.alone == 0 && g.twin.dead {
		g.alone, g.isFirst = now, true
	}
	var next time.Duration
	sooner := func(at time.Duration) {
		if at > 0 && (next == 0 || at < next) {
			next = at
		}
	}
	if g.alone > 0 && !g.orphaned {
		if now >= g.alone+twinGrace {
			g.endAll("the twin is gone and was not replaced")
		} else {
			sooner(g.alone + twinGrace)
		}
	}
	for _, number := range g.inOrder() {
		w := g.watches[number]
		if !w.ended && w.deadline > 0 && now >= w.deadline {
			g.end(w, "the lease ran out")
		}
		if !w.ended {
			sooner(w.deadline)
			continue
		}
		sooner(w.kill(now))
		sooner(w.close(now, g))
		if w.settled() && (g.orphaned || w.forgotten) {
			delete(g.watches, number)
		}
	}
	sooner(g.feed(now))
	return next
}

func (g *guardian) end(w *watch, why string) {
	if w.ended {
		return
	}
	g.w.say("%s: guardian %d ends lease %d: %s", g.node.name, g.index+1, w.epoch, why)
	w.end(g.host.now(), g.index, g.orphaned || g.alone > 0)
	g.say(&message{op: opEnded, epoch: w.epoch, why: why})
}

func (g *guardian) endAll(why string) {
	for _, number := range g.inOrder() {
		g.end(g.watches[number], why)
	}
}

func (g *guardian) obey(m *message) error {
	switch m.op {
	case opTwin:
		g.twin, g.alone = m.twin, 0
		return nil
	case opHeed:
		return nil
	case opDog:
		g.keepDog(m.dog)
		return nil
	case opUndog:
		g.dropDog()
		return nil
	case opBegin:
		if g.watches[m.epoch] != nil {
			return errors.New("the epoch has begun before")
		}
		g.watches[m.epoch] = &watch{epoch: m.epoch, ticket: m.ticket, trees: map[uint64]*quarry{}}
		return nil
	}
	w := g.watches[m.epoch]
	if w == nil {
		return errUnknownEpoch
	}
	if m.op != opExtend && m.op != opShorten && !w.ended && w.deadline > 0 && g.host.now() >= w.deadline {
		g.end(w, "the lease ran out")
	}
	switch m.op {
	case opEnd:
		w.deadline = max(w.deadline, m.deadline) // of one that was over before this guardian began
		g.end(w, m.why)
	case opFinish:
		w.forgotten = true
		if !w.ended && len(w.trees) > 0 {
			g.end(w, "finished with trees left")
		} else if !w.ended {
			delete(g.watches, m.epoch)
		}
	default:
		return w.obey(m)
	}
	return nil
}

// obey does what concerns the trees of an epoch that may have ended.
func (w *watch) obey(m *message) error {
	switch m.op {
	case opExtend:
		if w.ended {
			return child.ErrLeaseEnded
		}
		w.deadline = max(w.deadline, m.deadline)
		return nil
	case opShorten:
		if w.ended {
			return child.ErrLeaseEnded
		}
		if w.deadline > 0 {
			w.deadline = min(w.deadline, m.deadline)
		}
		for _, q := range w.trees {
			q.after = min(q.after, m.after)
		}
		return nil
	case opTree:
		if w.ended {
			return child.ErrLeaseEnded
		}
		w.trees[m.tree] = &quarry{release: m.release, body: m.body}
		return nil
	}
	q := w.trees[m.tree]
	if q == nil {
		return errors.New("no such tree")
	}
	if m.op == opArm {
		if w.ended {
			return child.ErrLeaseEnded
		}
		q.armed, q.after = true, m.after
		return nil
	}
	q.body, q.dead = nil, true
	if !w.ended { // an ended epoch still needs the release
		delete(w.trees, m.tree)
	}
	return nil
}
