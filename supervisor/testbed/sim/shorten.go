package sim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"understudy/supervisor/child"
	"understudy/supervisor/guard"
)

// Shorten implements supervisor.Guard.
func (g *keeper) Shorten(ctx context.Context, number uint64, deadline time.Duration, w child.Watchdog) error {
	if !g.inc.pass() {
		return errCrashed
	}
	told, err := g.shorten(number, deadline, w)
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
	return g.pair.State.Shorten(g.now(), number, deadline, guard.Fit{Timeout: w.Timeout, After: w.After})
}
