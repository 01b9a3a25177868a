package child

import (
	"context"
	"errors"
	"fmt"
	"time"

	"understudy/supervisor/guard"
)

// kennel is what this process knows of the watchdog. All that opens and closes the device holds turn.
type kennel struct {
	open   func(Watchdog) (*dogDevice, error)
	retime func(*dogDevice, time.Duration) error
	turn   chan struct{} // capacity 1
	idle   chan struct{} // capacity 1: no tree needs it any more
	dog    *dogDevice    // guarded by Guard.mu; nil: no guardian feeds it
}

func newKennel() kennel {
	return kennel{open: openDog, retime: retimeDog, turn: make(chan struct{}, 1), idle: make(chan struct{}, 1)}
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
	done, err := g.dogTurn(ctx)
	if err != nil {
		return err
	}
	defer done()
	if err := g.holdDog(ctx, w); err != nil {
		return err
	}
	g.mu.Lock()
	seq, err := t.entry.Arm(Now(), w.After)
	g.unlock()
	if err != nil {
		g.strayDog()
		return err
	}
	return g.answered(ctx, seq)
}

// CheckWatchdog finds out whether the device could be armed, by doing it. One that may not be disarmed again stays armed.
func (g *Guard) CheckWatchdog(ctx context.Context, w Watchdog) error {
	err := func() error {
		done, err := g.dogTurn(ctx)
		if err != nil {
			return err
		}
		defer done()
		g.mu.Lock()
		held := g.kennel.dog != nil
		g.mu.Unlock()
		if held {
			return nil
		}
		d, err := g.openDog(ctx, w)
		if err != nil {
			return err
		}
		if d.permanent {
			return g.adoptDog(ctx, d)
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
	return g.kennel.dog != nil
}

func (g *Guard) dogTurn(ctx context.Context) (done func(), err error) {
	select {
	case g.kennel.turn <- struct{}{}:
		return func() { <-g.kennel.turn }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-g.stopped:
		return nil, ErrStopped
	}
}

// holdDog has the device open, and both guardians feeding it.
func (g *Guard) holdDog(ctx context.Context, w Watchdog) error {
	g.mu.Lock()
	held := g.kennel.dog
	g.mu.Unlock()
	if held == nil {
		d, err := g.openDog(ctx, w)
		if err != nil {
			return err
		}
		return g.adoptDog(ctx, d)
	}
	if held.timeout > w.Timeout {
		return fmt.Errorf("it is in use with a timeout of %v, and %v is needed", held.timeout, w.Timeout)
	}
	return nil
}

func (g *Guard) adoptDog(ctx context.Context, d *dogDevice) error {
	g.mu.Lock()
	g.kennel.dog = d
	seq := g.pair.Ledger.Feed(Now(), d.timeout, d.file)
	g.unlock()
	if d.permanent {
		g.words.say(g.cfg.Logger.Warn, "the watchdog cannot be disarmed any more (nowayout): the machine is reset some time after this supervisor stops")
	}
	if err := g.answered(ctx, seq); err != nil {
		g.strayDog()
		return err
	}
	g.words.say(g.cfg.Logger.Info, "watchdog armed", "timeout", d.timeout)
	return nil
}

// strayDog has the device looked at: it may be needed by nobody.
func (g *Guard) strayDog() {
	select {
	case g.kennel.idle <- struct{}{}:
	default:
	}
}

// keepKennel disarms the device when nobody needs it, until the guard has stopped.
func (g *Guard) keepKennel() {
	for {
		select {
		case <-g.kennel.idle:
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
	done, err := g.dogTurn(ctx)
	if err != nil {
		return
	}
	defer done()
	g.mu.Lock()
	d := g.kennel.dog
	if d == nil || d.permanent && !leaving {
		g.unlock()
		return
	}
	seq, needed := g.pair.Ledger.Unfeed(Now())
	if needed {
		g.unlock()
		return
	}
	g.kennel.dog = nil
	g.unlock()
	began := time.Now()
	err = errors.Join(g.answered(ctx, seq), d.part())
	if err != nil {
		g.words.say(g.cfg.Logger.Error, "the watchdog may not be disarmed", "error", err)
		return
	}
	g.words.say(g.cfg.Logger.Info, "watchdog disarmed", "took", time.Since(began).Round(time.Millisecond))
}
