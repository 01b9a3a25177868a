package sim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"understudy/supervisor/child"
	"understudy/supervisor/guard"
	machine "understudy/supervisor/host"
)

const twinGrace = time.Second

// keeper is what a supervisor process is given as its guard: leases and trees, in the simulated world. World.mu guards it.
type keeper struct {
	*twins
	watchdog watchdog
	planted  int // the last number given to a tree
	handing  func() (guard.Handover, error)
}

func bareKeeper(inc *incarnation) *keeper {
	g := &keeper{twins: newTwins(inc)}
	g.watchdog = watchdog{of: g, turn: make(chan struct{}, 1), idle: make(chan struct{}, 1)}
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
	g.took(g.pair.Present(g.now(), [2]uint64{}), [2]*guardian{newGuardian(g.twins, 0), newGuardian(g.twins, 1)})
	g.pair.Introduce()
	inc.guard = g
	return g, nil
}

func ring(bell chan struct{}) {
	select {
	case bell <- struct{}{}:
	default:
	}
}

// Run implements host.Guard.
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
		if due := g.look(); due > 0 {
			timer.Reset(g.inc.node.host.until(due))
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
		g.hangUp()
		g.w.mu.Unlock()
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("stop the guard: %w", err)
	}
	return nil
}

// mayDieTelling kills, now and then, a supervisor that is telling a new guardian everything, or has just told it: that then has a lease,
// and not the trees.
// World.mu is held.
func (i *incarnation) mayDieTelling() {
	n := i.node
	w := n.w
	if w.course.quiet || n.host.lags.IntN(3) > 0 {
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

var _ machine.Guard = (*keeper)(nil)
