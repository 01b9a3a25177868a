package sim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"understudy/supervisor/child"

	"understudy/supervisor/guard"
)

// Shorten implements host.Guard.
func (g *keeper) Shorten(ctx context.Context, number uint64, deadline time.Duration, w child.Watchdog) error {
	if !g.inc.pass() {
		return errCrashed
	}
	told, err := g.shorten(number, deadline, w)
	defer g.forget(told)
	if err == nil {
		err = g.refit(ctx, number, deadline, w)
	}
	if err == nil || errors.Is(err, guard.ErrMisfit) {
		err = errors.Join(err, g.answered(ctx, told))
	}
	if err != nil {
		return fmt.Errorf("shorten epoch %d: %w", number, err)
	}
	return nil
}

func (g *keeper) shorten(number uint64, deadline time.Duration, w child.Watchdog) (seq uint64, err error) {
	g.w.mu.Lock()
	defer g.w.mu.Unlock()
	g.w.say("%s: lease %d is shortened", g.inc.node.name, number)
	defer g.changed()
	return g.pair.State.Shorten(g.now(), number, deadline, fit(w))
}

func fit(w child.Watchdog) guard.Fit { return guard.Fit{Timeout: w.Timeout, After: w.After} }

func (g *keeper) refit(ctx context.Context, number uint64, deadline time.Duration, w child.Watchdog) error {
	g.w.mu.Lock()
	d := g.watchdog.device
	g.w.mu.Unlock()
	if d == nil {
		return nil
	}
	bounded, cancel := context.WithTimeout(ctx, d.timeout/4)
	defer cancel()
	done, err := g.watchdog.hold(bounded)
	if err == nil {
		err = g.retime(deadline, w)
		done()
	}
	if err == nil {
		return nil
	}
	again, e := g.shorten(number, min(deadline, g.inc.node.host.now()+d.timeout/2), w)
	if e != nil {
		return e
	}
	g.forget(again)
	return fmt.Errorf("%w: %w", guard.ErrMisfit, err)
}

func (g *keeper) retime(deadline time.Duration, w child.Watchdog) error {
	if !g.inc.pass() {
		return errCrashed
	}
	g.w.mu.Lock()
	defer g.w.mu.Unlock()
	if needed, err := g.pair.State.Refit(g.now(), deadline, fit(w)); err != nil || !needed {
		return err
	}
	g.watchdog.device.timeout = w.Timeout
	g.watchdog.device.write(false)
	g.w.say("%s: watchdog set to %v", g.inc.node.name, w.Timeout)
	g.pair.State.Retime(w.Timeout)
	return nil
}
