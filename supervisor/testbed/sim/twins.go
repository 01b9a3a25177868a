package sim

import (
	"context"
	"errors"
	"time"

	"understudy/supervisor/child"
	"understudy/supervisor/guard"
)

// twins runs what a supervisor process knows of its guardians (guard.Pair) over the simulated world, as child.Guard does over the
// real one. World.mu guards it.
type twins struct {
	leases
	w         *world
	inc       *incarnation
	guardians [2]*guardian
	due       time.Duration // when keeper.Run looks again
	bell      chan struct{} // holds one when something is due sooner
	stopped   chan struct{}
}

func newTwins(inc *incarnation) *twins {
	g := &twins{w: inc.node.w, inc: inc, bell: make(chan struct{}, 1), stopped: make(chan struct{})}
	g.leases = leases{of: inc, pair: guard.NewGuardians(guardianHands{g})}
	return g
}

// look does what is due, and tells when something is next. World.mu is held.
func (g *twins) look() time.Duration {
	g.due = g.pair.Due(g.now())
	return g.due
}

// hangUp closes the sockets to both guardians. World.mu is held.
func (g *twins) hangUp() {
	for _, s := range g.guardians {
		if s != nil {
			s.orphan()
		}
	}
}

func (g *twins) took(numbers [2]uint64, all [2]*guardian) {
	g.guardians = all
	for i, s := range all {
		s.of, s.number = g, numbers[i]
	}
}

func (g *twins) now() time.Duration { return g.inc.node.host.now() }

// changed has Run look again, if something is due sooner than it knows. World.mu is held.
func (g *twins) changed() {
	if next := g.pair.Next(); next > 0 && (g.due == 0 || next < g.due) {
		g.due = next
		ring(g.bell)
	}
}

// trees is all that have not ended. World.mu is held.
func (g *twins) trees() (all []*handle) {
	for _, e := range g.pair.State.Leases() {
		for _, t := range e.Trees() {
			all = append(all, t.Spec.Of.(*handle))
		}
	}
	return all
}

// hear takes in what a guardian says. World.mu is held.
func (g *twins) hear(s *guardian, m *guard.Message) {
	if !g.inc.alive() {
		return
	}
	g.pair.Heard(g.now(), s.index, s.number, m)
	g.changed()
}

// lost is the kernel's word that a guardian is gone. World.mu is held.
func (g *twins) lost(s *guardian) {
	if !g.inc.alive() {
		return
	}
	here := g.guardians[s.index] == s
	g.pair.Gone(g.now(), s.index, s.number)
	if here {
		g.guardians[s.index] = nil
	}
	g.changed()
}

// guardianHands do what the guardians decide in the simulated world. World.mu is held.
type guardianHands struct{ *twins }

// Send implements guard.SupervisorHands.
func (g guardianHands) Send(at int, m *guard.Message) {
	s := g.guardians[at]
	if s == nil {
		return
	}
	if m.Op == guard.OpTwin {
		if g.guardians[1-at] == nil {
			return
		}
		m.Along = g.guardians[1-at]
	}
	s.deliver(m)
}

var errNoFork = errors.New("the kernel has no room for a process")

// Start implements guard.SupervisorHands. All draws are made here: two guardians may be started at the same time.
func (g guardianHands) Start(at int, number uint64) {
	w, host := g.w, g.inc.node.host
	soon, fails, blind := 5*time.Millisecond+drawn(host.rng, 20*time.Millisecond), false, time.Duration(0)
	if r := host.lags; !w.plan.Calm {
		fails = r.IntN(16) == 0
		if r.IntN(4) == 0 {
			blind = drawn(r, 60*time.Millisecond)
		}
	}
	w.wait.Go(func() {
		w.sleep(context.Background(), soon)
		if !g.inc.pass() {
			return
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		if !g.inc.alive() {
			return
		}
		if fails {
			g.pair.Began(g.now(), at, number, errNoFork)
			g.changed()
			return
		}
		previous, s := g.guardians[at], newGuardian(g.twins, at)
		s.number, g.guardians[at] = number, s
		if blind > 0 {
			s.hands.blindFor(blind)
		}
		if !g.pair.Began(g.now(), at, number, nil) {
			g.guardians[at] = previous
			s.die()
		}
		g.changed()
	})
}

// Kill implements guard.SupervisorHands.
func (g guardianHands) Kill(at int, why error) {
	if s := g.guardians[at]; s != nil && s.alive() {
		g.w.say("%s: the supervisor kills guardian %d: %v", g.inc.node.name, at+1, why)
		s.die()
	}
}

// KillNow implements guard.SupervisorHands.
func (g guardianHands) KillNow() {
	for _, t := range g.trees() {
		t.strike()
	}
}

// Say implements guard.SupervisorHands.
func (g guardianHands) Say(what guard.News, at int, why error) {
	said := map[guard.News]string{
		guard.Replaced: "is replaced", guard.NotReplaced: "is not replaced", guard.BothLost: "and the other one are lost",
		guard.NotStarted: "and the other one are not started", guard.Anew: "and the other one watch anew",
	}[what]
	g.w.say("%s: guardian %d %s (%v)", g.inc.node.name, at+1, said, why)
}

// healthy is how many of the supervisor and the guardians that hold all its trees can act. Of the three, the promises need one.
func (g *twins) healthy() (n int) {
	if g.inc.running() {
		n++
	}
	for other := range g.inc.node.host.beings {
		if other.of == g && other.running() && other.sees() {
			n++
		}
	}
	return n
}

// answered waits until both guardians have done what they were asked. One that takes too long is replaced.
func (g *twins) answered(ctx context.Context, seq uint64) error {
	for {
		if !g.inc.pass() {
			return errCrashed
		}
		g.w.mu.Lock()
		done, err := g.pair.Questions.Answered(seq)
		over := g.pair.Questions.Over(seq)
		g.w.mu.Unlock()
		if done {
			return err
		}
		select {
		case <-over:
			continue
		case <-ctx.Done():
			err = context.Cause(ctx)
		case <-g.stopped:
			err = child.ErrStopped
		}
		g.forget(seq)
		return err
	}
}

func (g *twins) forget(seq uint64) {
	g.w.mu.Lock()
	defer g.w.mu.Unlock()
	g.pair.Questions.Forget(seq)
}
