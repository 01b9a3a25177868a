package sim

import (
	"context"
	"errors"
	"net"
	"time"

	"understudy/election"
	"understudy/supervisor/guard"
)

const (
	givesUp     = 30 * time.Second
	strikeAgain = 20 * time.Millisecond
)

// hands is what a guardian does in the simulated world, and what it has for that. World.mu guards it.
type hands struct {
	*guardian
	blind    time.Time      // until then it can open nothing
	twin     *guardian      // nil: it was not told of one
	watchdog *device        // nil: there is none, or none that is needed
	closed   []guard.Closed // that it has not taken in, as the next
	undone   []guard.Undone
}

// blindFor has it open nothing for a while.
func (h *hands) blindFor(d time.Duration) { h.blind = time.Now().Add(d) }

// alone tells whether the other one's end can be seen.
func (h *hands) alone() bool { return h.twin != nil && h.twin.fallen }

// haveClosed is what was closed since it was asked last.
func (h *hands) haveClosed() []guard.Closed {
	closed := h.closed
	h.closed = nil
	return closed
}

// Open implements guard.Hands.
func (h *hands) Open(m *guard.Message) (guard.Box, error) {
	if time.Now().Before(h.blind) {
		h.of.inc.mayDieTelling()
		return nil, errBlind
	}
	if m.Op == guard.OpJoin { // it was found in another cgroup
		return h.openFound(m.Box)
	}
	t := m.Along.(*tree)
	t.known[h.guardian] = struct{}{}
	return heldTree{t, h.guardian}, nil
}

var errBlind = errors.New("too many open files")

// sees tells whether a guardian knows all trees of its supervisor in which something may be alive. World.mu is held.
func (g *guardian) sees() bool {
	for _, t := range g.host.trees {
		if _, known := t.known[g]; !known && t.of == g.of && len(t.procs) > 0 {
			return false
		}
	}
	return true
}

// Take implements guard.Hands.
func (h *hands) Take(m *guard.Message) error {
	switch along := m.Along.(type) {
	case *guardian:
		h.twin = along
	case *device:
		h.watchdog = along
		along.holders[h.guardian] = true
	}
	return nil
}

// Tell implements guard.Hands. The supervisor hears it when it is not frozen.
func (h *hands) Tell(m *guard.Message) {
	if h.line.orphaned {
		return
	}
	g := h.guardian
	if m.Op == guard.OpEnded {
		g.w.say("%s: guardian %d ends lease %d: %s", g.node.name, g.index+1, m.Epoch, m.Why)
	}
	if m.Op == guard.OpAck && len(g.line.said) == 0 && g.of.inc.running() { // it changes nothing that the caller may be in the midst of
		g.of.hear(g, m)
		return
	}
	if g.line.said = append(g.line.said, m); len(g.line.said) == 1 {
		late := 1 + drawn(g.host.lags, time.Millisecond) // not when it thaws: nothing is locked then
		g.of.inc.do(func() { g.w.after(late, g.listenTo) })
	}
}

// listenTo has the supervisor hear what a guardian has said, in its order.
func (g *guardian) listenTo() {
	said := g.line.said
	g.line.said = nil
	for _, m := range said {
		g.of.hear(g, m)
	}
}

// Feed implements guard.Hands.
func (h *hands) Feed() { h.watchdog.write(false) }

// LetGo implements guard.Hands.
func (h *hands) LetGo(last bool) {
	if last {
		h.watchdog.write(true)
	}
	h.watchdog.close(h.guardian)
	h.watchdog = nil
}

// Close implements guard.Hands.
func (h *hands) Close(c guard.Closing) {
	g := h.guardian
	g.w.wait.Go(func() {
		closed := guard.Closed{Closing: c, Err: g.closeSession(c)}
		if !g.pass() {
			return
		}
		g.w.mu.Lock()
		defer g.w.mu.Unlock()
		h.closed = append(h.closed, closed)
		g.wake()
	})
}

// heldTree is a tree as a guardian holds it.
type heldTree struct {
	*tree
	by *guardian
}

// Order implements guard.Box.
func (p heldTree) Order() { p.strike() }

// Look implements guard.Box.
func (p heldTree) Look(bool) guard.Look {
	if dead, _ := guard.KillOnce(whole{container{p.tree}}, true); dead {
		return guard.Look{Dead: true}
	}
	return guard.Look{Again: strikeAgain}
}

// Waits implements guard.Box.
func (p heldTree) Waits() bool { return true }

// Close implements guard.Box.
func (p heldTree) Close() { delete(p.known, p.by) }

// closeSession is what the guardian does beside its loop: the real one's election.CloseEncoded over this network.
func (g *guardian) closeSession(c guard.Closing) error {
	ctx, cancel := context.WithTimeout(context.Background(), givesUp)
	defer cancel()
	order := election.Closing{Ticket: c.Ticket, Dead: c.Releases, Undone: c.Undone, Left: c.Left, All: c.All}
	order.End = election.EndedBy(time.Now().Add(c.DiedAt - g.host.now()))
	if c.Exactly {
		order.End.Min = order.End.Max
	}
	t, dead, err := order.Decode()
	if err != nil {
		panic(err)
	}
	dial := func(ctx context.Context, address string) (net.Conn, error) {
		if !g.pass() {
			return newTomb(), nil
		}
		if err := g.finds(ctx, &t, address); err != nil {
			return nil, err
		}
		return g.w.net.dial(ctx, g.host.index, serverOf(address), g.gate)
	}
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		err := t.Close(ctx, dial, dead, order.End, c.All)
		if err == nil || !g.alive() || !g.w.sleep(ctx, pause) {
			return err
		}
	}
}
