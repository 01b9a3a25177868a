package sim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"understudy/supervisor"
	"understudy/supervisor/child"
	"understudy/supervisor/guard"
)

const twinGrace = time.Second

// keeper runs what a supervisor process knows of its guardians (guard.Pair) over the simulated world, as child.Guard does over the
// real one. World.mu guards it.
type keeper struct {
	w         *world
	inc       *incarnation
	pair      *guard.Pair
	guardians [2]*guardian
	due       time.Duration // when Run looks again
	bell      chan struct{} // holds one when something is due sooner
	stopped   chan struct{}
	watchdog  watchdog
	planted   int // the last number given to a tree
	handing   func() (guard.Legacy, error)
}

func bareKeeper(inc *incarnation) *keeper {
	g := &keeper{
		w: inc.node.w, inc: inc, bell: make(chan struct{}, 1), stopped: make(chan struct{}),
	}
	g.watchdog = watchdog{of: g, turn: make(chan struct{}, 1), idle: make(chan struct{}, 1)}
	g.pair = guard.NewPair(pairHands{g})
	return g
}

func newKeeper(ctx context.Context, inc *incarnation) (*keeper, error) {
	g, w := bareKeeper(inc), inc.node.w
	if !w.sleep(ctx, w.draw(inc.node.host.rng, 5*time.Millisecond)) || !inc.pass() {
		return nil, errCrashed
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !inc.alive() {
		return nil, errCrashed
	}
	g.took(g.pair.Present(g.now(), [2]uint64{}), [2]*guardian{newGuardian(g, 0), newGuardian(g, 1)})
	g.pair.Introduce()
	inc.guard = g
	return g, nil
}

func (g *keeper) took(numbers [2]uint64, all [2]*guardian) {
	g.guardians = all
	for i, s := range all {
		s.of, s.number = g, numbers[i]
	}
}

func (g *keeper) now() time.Duration { return g.inc.node.host.now() }

// changed has Run look again, if something is due sooner than it knows. World.mu is held.
func (g *keeper) changed() {
	if next := g.pair.Next(); next > 0 && (g.due == 0 || next < g.due) {
		g.due = next
		ring(g.bell)
	}
}

func ring(bell chan struct{}) {
	select {
	case bell <- struct{}{}:
	default:
	}
}

// Run implements supervisor.Guard.
func (g *keeper) Run(ctx context.Context) error {
	g.w.wait.Go(func() { g.watchdog.disarmWhenIdle(ctx) })
	stop, over := ctx.Done(), make(chan error, 1)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-stop:
			stop = nil
			go func() { over <- g.stop(context.WithoutCancel(ctx)) }()
			continue
		case err := <-over:
			return err
		case <-g.bell:
		case <-timer.C:
		}
		if !g.inc.pass() {
			continue
		}
		g.w.mu.Lock()
		if g.due = g.pair.Due(g.now()); g.due > 0 {
			timer.Reset(g.inc.node.host.until(g.due))
		}
		g.w.mu.Unlock()
	}
}

func (g *keeper) stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if !g.inc.pass() {
		return nil
	}
	g.w.mu.Lock()
	g.pair.Stop()
	g.pair.StrikeAll(child.ErrStopped)
	all := g.trees()
	g.w.mu.Unlock()
	var errs []error
	for _, t := range all {
		errs = append(errs, t.End(ctx))
	}
	g.watchdog.disarm(ctx)
	close(g.stopped)
	if g.inc.pass() {
		g.w.mu.Lock()
		for _, s := range g.guardians {
			if s != nil {
				s.orphan()
			}
		}
		g.w.mu.Unlock()
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("stop the guard: %w", err)
	}
	return nil
}

// trees is all that have not ended. World.mu is held.
func (g *keeper) trees() (all []*handle) {
	for _, e := range g.pair.Ledger.Epochs() {
		for _, t := range e.Trees() {
			all = append(all, t.Plant.Of.(*handle))
		}
	}
	return all
}

// hear takes in what a guardian says. World.mu is held.
func (g *keeper) hear(s *guardian, m *guard.Message) {
	g.pair.Heard(g.now(), s.index, s.number, m)
	g.changed()
}

// clogged tells whether a guardian's socket is full. World.mu is held.
func (g *keeper) clogged(s *guardian, full bool) {
	g.pair.Clogged(g.now(), s.index, s.number, full)
	g.changed()
}

// lost is the kernel's word that a guardian is gone. World.mu is held.
func (g *keeper) lost(s *guardian) {
	here := g.guardians[s.index] == s
	g.pair.Gone(g.now(), s.index, s.number)
	if here {
		g.guardians[s.index] = nil
	}
	g.changed()
}

// pairHands do what a pair decides in the simulated world. World.mu is held.
type pairHands struct{ *keeper }

// Send implements guard.PairHands.
func (g pairHands) Send(at int, m *guard.Message) {
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

// Start implements guard.PairHands.
func (g pairHands) Start(at int, number uint64) {
	w := g.w
	w.wait.Go(func() {
		w.sleep(context.Background(), 5*time.Millisecond+w.draw(g.inc.node.host.rng, 20*time.Millisecond))
		if !g.inc.pass() {
			return
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		if !g.inc.alive() {
			return
		}
		former, s := g.guardians[at], newGuardian(g.keeper, at)
		s.number, g.guardians[at] = number, s
		if r := g.inc.node.host.lags; !w.plan.Calm && r.IntN(4) == 0 {
			s.blind = time.Now().Add(drawn(r, 60*time.Millisecond))
		}
		if !g.pair.Began(g.now(), at, number, nil) {
			g.guardians[at] = former
			s.die()
		}
		g.changed()
	})
}

// Kill implements guard.PairHands.
func (g pairHands) Kill(at int, why error) {
	if s := g.guardians[at]; s != nil && !s.dead {
		g.w.say("%s: the supervisor kills guardian %d: %v", g.inc.node.name, at+1, why)
		s.die()
	}
}

// Strike implements guard.PairHands.
func (g pairHands) Strike() {
	for _, t := range g.trees() {
		t.strike()
	}
}

// Say implements guard.PairHands.
func (g pairHands) Say(what guard.News, at int, why error) {
	said := map[guard.News]string{
		guard.Replaced: "is replaced", guard.NotReplaced: "is not replaced", guard.BothLost: "and the other one are lost",
		guard.NotStarted: "and the other one are not started", guard.Anew: "and the other one watch anew",
	}[what]
	g.w.say("%s: guardian %d %s (%v)", g.inc.node.name, at+1, said, why)
}

// mayDieTelling kills, now and then, a supervisor that is telling a new guardian everything, or has just told it: that then has a lease,
// and not the trees.
// World.mu is held.
func (i *incarnation) mayDieTelling() {
	n := i.node
	w := n.w
	if w.quiet || n.host.lags.IntN(3) > 0 {
		return
	}
	soon := drawn(n.host.lags, 100*time.Millisecond) - 50*time.Millisecond
	w.after(max(soon, 0), func() {
		if n.inc == i && i.running() && i.mayLose(1) {
			w.say("%s: supervisor %d is killed while it tells a guardian everything", n.name, i.number)
			w.nemesis.noteFault(CrashSupervisor)
			n.crash(true)
			w.after(w.plan.Timeout/2, n.start)
		}
	})
}

var _ supervisor.Guard = (*keeper)(nil)
