package sim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"understudy/supervisor/child"
)

// watchdog is what a supervisor knows of its node's device.
type watchdog struct {
	of     *keeper
	device *device       // nil: no guardian feeds it
	turn   chan struct{} // held by who opens or closes it
	idle   chan struct{} // holds one when it may be needed by nobody
}

// Arm is child.Tree's.
func (t *handle) Arm(ctx context.Context, w child.Watchdog) error {
	if err := t.arm(ctx, w); err != nil {
		return fmt.Errorf("arm the watchdog: %w", err)
	}
	return nil
}

func (t *handle) arm(ctx context.Context, w child.Watchdog) error {
	g := t.guard
	done, err := g.watchdog.hold(ctx)
	if err != nil {
		return err
	}
	defer done()
	if err := g.watchdog.ready(ctx, w); err != nil {
		return err
	}
	if !g.inc.pass() {
		return errCrashed
	}
	g.w.mu.Lock()
	seq, err := t.guarded.Arm(g.now(), w.After)
	g.changed()
	g.w.mu.Unlock()
	if err != nil {
		g.watchdog.mayDisarm()
		return err
	}
	return g.answered(ctx, seq)
}

// CheckWatchdog is child.Guard's.
func (g *keeper) CheckWatchdog(ctx context.Context, w child.Watchdog) error {
	done, err := g.watchdog.hold(ctx)
	if err != nil {
		return err
	}
	defer done()
	if !g.inc.pass() {
		return errCrashed
	}
	if err := g.mayOpen(ctx); err != nil {
		return fmt.Errorf("check the watchdog: %w", err)
	}
	g.w.mu.Lock()
	defer g.w.mu.Unlock()
	if g.watchdog.device != nil {
		return nil
	}
	d := g.inc.node.watchdog
	if err := d.open(g, w.Timeout); err != nil {
		return fmt.Errorf("check the watchdog: %w", err)
	}
	d.write(true)
	d.close(g)
	return nil
}

func (w *watchdog) hold(ctx context.Context) (done func(), err error) {
	g := w.of
	select {
	case w.turn <- struct{}{}:
		return func() { <-w.turn }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-g.stopped:
		return nil, child.ErrStopped
	}
}

// ready has the device open, and both guardians feeding it.
func (w *watchdog) ready(ctx context.Context, wanted child.Watchdog) error {
	g := w.of
	if !g.inc.pass() {
		return errCrashed
	}
	g.w.mu.Lock()
	if w.device != nil {
		defer g.w.mu.Unlock()
		if w.device.timeout > wanted.Timeout {
			return errors.New("it is in use with a longer timeout")
		}
		return nil
	}
	g.w.mu.Unlock()
	if err := g.mayOpen(ctx); err != nil {
		return err
	}
	g.w.mu.Lock()
	d := g.inc.node.watchdog
	if err := d.open(g, wanted.Timeout); err != nil {
		g.w.mu.Unlock()
		return err
	}
	g.w.say("%s: watchdog armed, %v", g.inc.node.name, wanted.Timeout)
	w.device = d
	seq := g.pair.State.Feed(g.now(), d.timeout, d)
	g.changed()
	g.w.mu.Unlock()
	if err := g.answered(ctx, seq); err != nil {
		w.mayDisarm()
		return err
	}
	return nil
}

func (w *watchdog) mayDisarm() {
	ring(w.idle)
}

// disarmWhenIdle disarms the device when nobody needs it.
func (w *watchdog) disarmWhenIdle(ctx context.Context) {
	for {
		select {
		case <-w.idle:
			w.disarm(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// disarm lets go of the device if no tree needs it: first the guardians, and this process last, whose farewell then counts.
func (w *watchdog) disarm(ctx context.Context) {
	g := w.of
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	done, err := w.hold(ctx)
	if err != nil {
		return
	}
	defer done()
	if !g.inc.pass() {
		return
	}
	g.w.mu.Lock()
	d := w.device
	if d == nil {
		g.w.mu.Unlock()
		return
	}
	seq, needed := g.pair.State.Unfeed(g.now())
	if needed {
		g.w.mu.Unlock()
		return
	}
	w.device = nil
	g.changed()
	g.w.mu.Unlock()
	_ = g.answered(ctx, seq)
	if !g.inc.pass() {
		return
	}
	g.w.mu.Lock()
	defer g.w.mu.Unlock()
	if d.holders[g] {
		g.w.say("%s: watchdog disarmed", g.inc.node.name)
		d.write(true)
		d.close(g)
	}
}
