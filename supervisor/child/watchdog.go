package child

import (
	"context"
	"errors"
	"fmt"
	"time"

	"understudy/supervisor/guard"
)

// watchdog is what this process knows of the watchdog. All that opens and closes the device holds turn.
type watchdog struct {
	open   func(Watchdog) (*watchdogDevice, error)
	retime func(*watchdogDevice, time.Duration) error
	turn   chan struct{}   // capacity 1
	idle   chan struct{}   // capacity 1: no tree needs it any more
	device *watchdogDevice // guarded by Guard.mu; nil: no guardian feeds it
}

func newWatchdog() watchdog {
	return watchdog{open: openWatchdog, retime: retimeWatchdog, turn: make(chan struct{}, 1), idle: make(chan struct{}, 1)}
}

// Arm has the machine reset unless this tree is proved dead soon after its lease's end. To be called before anything is
// started in it. The guardians feed the device by themselves; it is disarmed once no tree needs it.
func (t *Tree) Arm(ctx context.Context, w Watchdog) error {
	if err := t.arm(ctx, w); err != nil {
		return fmt.Errorf("arm the watchdog: %w", err)
	}
	return nil
}

func (t *Tree) arm(ctx context.Context, w Watchdog) error {
	g := t.guard
	done, err := g.watchdogTurn(ctx)
	if err != nil {
		return err
	}
	defer done()
	if err := g.haveWatchdog(ctx, w); err != nil {
		return err
	}
	g.mu.Lock()
	seq, err := t.entry.Arm(Now(), w.After)
	g.unlock()
	if err != nil {
		g.mayDisarm()
		return err
	}
	return g.answered(ctx, seq)
}

// CheckWatchdog finds out whether the device could be armed, by doing it. One that may not be disarmed again stays armed.
func (g *Guard) CheckWatchdog(ctx context.Context, w Watchdog) error {
	err := func() error {
		done, err := g.watchdogTurn(ctx)
		if err != nil {
			return err
		}
		defer done()
		g.mu.Lock()
		held := g.watchdog.device != nil
		g.mu.Unlock()
		if held {
			return nil
		}
		d, err := g.openWatchdog(ctx, w)
		if err != nil {
			return err
		}
		if d.permanent {
			return g.shareWatchdog(ctx, d)
		}
		return d.part()
	}()
	if err != nil {
		return fmt.Errorf("check the watchdog: %w", err)
	}
	return nil
}

// WatchdogArmed tells whether a device resets this machine unless it is fed.
func (g *Guard) WatchdogArmed() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.watchdog.device != nil
}

func (g *Guard) watchdogTurn(ctx context.Context) (done func(), err error) {
	select {
	case g.watchdog.turn <- struct{}{}:
		return func() { <-g.watchdog.turn }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-g.stopped:
		return nil, ErrStopped
	}
}

// haveWatchdog has the device open, and both guardians feeding it.
func (g *Guard) haveWatchdog(ctx context.Context, w Watchdog) error {
	g.mu.Lock()
	held := g.watchdog.device
	g.mu.Unlock()
	if held == nil {
		d, err := g.openWatchdog(ctx, w)
		if err != nil {
			return err
		}
		return g.shareWatchdog(ctx, d)
	}
	if held.timeout > w.Timeout {
		return fmt.Errorf("it is in use with a timeout of %v, and %v is needed", held.timeout, w.Timeout)
	}
	return nil
}

func (g *Guard) shareWatchdog(ctx context.Context, d *watchdogDevice) error {
	g.mu.Lock()
	g.watchdog.device = d
	seq := g.pair.Ledger.Feed(Now(), d.timeout, d.file)
	g.unlock()
	if d.permanent {
		g.words.say(g.cfg.Logger.Warn, "the watchdog cannot be disarmed any more (nowayout): the machine is reset some time after this supervisor stops")
	}
	if err := g.answered(ctx, seq); err != nil {
		g.mayDisarm()
		return err
	}
	g.words.say(g.cfg.Logger.Info, "watchdog armed", "timeout", d.timeout)
	return nil
}

// mayDisarm has the device looked at: it may be needed by nobody.
func (g *Guard) mayDisarm() {
	select {
	case g.watchdog.idle <- struct{}{}:
	default:
	}
}

// disarmWhenIdle disarms the device when nobody needs it, until the guard has stopped.
func (g *Guard) disarmWhenIdle() {
	for {
		select {
		case <-g.watchdog.idle:
			g.disarm(context.Background(), false)
		case <-g.stopped:
			return
		}
	}
}

// disarm lets go of the device if no tree needs it: first the guardians, and this process last, whose farewell then counts. One
// that may go on counting all the same is kept until the last moment.
func (g *Guard) disarm(ctx context.Context, leaving bool) {
	ctx, cancel := context.WithTimeout(ctx, 5*guard.AckLimit)
	defer cancel()
	done, err := g.watchdogTurn(ctx)
	if err != nil {
		return
	}
	defer done()
	g.mu.Lock()
	d := g.watchdog.device
	if d == nil || d.permanent && !leaving {
		g.unlock()
		return
	}
	seq, needed := g.pair.Ledger.Unfeed(Now())
	if needed {
		g.unlock()
		return
	}
	g.watchdog.device = nil
	g.unlock()
	began := time.Now()
	err = errors.Join(g.answered(ctx, seq), d.part())
	if err != nil {
		g.words.say(g.cfg.Logger.Error, "the watchdog may not be disarmed", "error", err)
		return
	}
	g.words.say(g.cfg.Logger.Info, "watchdog disarmed", "took", time.Since(began).Round(time.Millisecond))
}
