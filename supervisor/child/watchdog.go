package child

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/go-hclog"

	"understudy/supervisor/child/box"
	"understudy/supervisor/child/device"
	"understudy/supervisor/child/wire"
	"understudy/supervisor/guard"
	"understudy/supervisor/wait"
)

// Watchdog names a device that resets the machine when nobody has written to it for a while, and its settings.
type Watchdog struct {
	Path    string
	Timeout time.Duration // whole seconds
	After   time.Duration // the end of a lease: by then the machine is reset, if a tree of it is not proved dead
}

// watchdog is this process's part of the watchdog. Functions that open or close the device hold turn.
type watchdog struct {
	guardians *guardians
	leftovers *box.Leftovers
	open      func(path string, timeout time.Duration) (*device.Device, error)
	turn      chan struct{}  // capacity 1
	idle      chan struct{}  // capacity 1: no tree needs it any more
	device    *device.Device // guarded by guardians.mu; nil: no guardian feeds it
}

func newWatchdog(feeding *guardians, left *box.Leftovers) watchdog {
	return watchdog{
		guardians: feeding, leftovers: left,
		open: device.Open, turn: make(chan struct{}, 1), idle: make(chan struct{}, 1),
	}
}

// Arm makes the watchdog reset the machine unless this tree is proved dead soon after its lease's end. Call it before the first
// start in the tree. The guardians feed the device by themselves; it is disarmed once no tree needs it.
func (t *Tree) Arm(ctx context.Context, w Watchdog) error {
	if err := t.guard.watchdog.arm(ctx, t.guarded, w); err != nil {
		return fmt.Errorf("arm the watchdog: %w", err)
	}
	return nil
}

// arm has both guardians feed the device, and this tree need it.
func (w *watchdog) arm(ctx context.Context, tree *guard.Tree, wanted Watchdog) error {
	done, err := w.hold(ctx)
	if err != nil {
		return err
	}
	defer done()
	if err := w.ready(ctx, wanted); err != nil {
		return err
	}
	err = w.guardians.ask(ctx, func() (uint64, error) { return tree.Arm(wire.Now(), wanted.After) })
	if err != nil {
		w.mayDisarm()
	}
	return err
}

// CheckWatchdog finds out whether the device can be armed, by arming it. One that may not be disarmed again stays armed.
func (g *Guard) CheckWatchdog(ctx context.Context, w Watchdog) error {
	err := func() error {
		done, err := g.watchdog.hold(ctx)
		if err != nil {
			return err
		}
		defer done()
		if g.WatchdogArmed() {
			return nil
		}
		d, err := g.watchdog.openDevice(ctx, w)
		if err != nil {
			return err
		}
		if d.Permanent {
			return g.watchdog.share(ctx, d)
		}
		return d.Close()
	}()
	if err != nil {
		return fmt.Errorf("check the watchdog: %w", err)
	}
	return nil
}

// WatchdogArmed reports whether a device resets this machine unless it is fed.
func (g *Guard) WatchdogArmed() bool {
	defer g.guardians.lockToRead()()
	return g.watchdog.device != nil
}

func (w *watchdog) hold(ctx context.Context) (done func(), err error) {
	select {
	case w.turn <- struct{}{}:
		return func() { <-w.turn }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-w.guardians.stopped:
		return nil, ErrStopped
	}
}

// ready makes sure that the device is open, and that both guardians feed it.
func (w *watchdog) ready(ctx context.Context, wanted Watchdog) error {
	unlock := w.guardians.lock()
	held := w.device
	unlock()
	if held == nil {
		d, err := w.openDevice(ctx, wanted)
		if err != nil {
			return err
		}
		return w.share(ctx, d)
	}
	if held.Timeout > wanted.Timeout {
		return fmt.Errorf("it is in use with a timeout of %v, and %v is needed", held.Timeout, wanted.Timeout)
	}
	return nil
}

func (w *watchdog) share(ctx context.Context, d *device.Device) error {
	unlock := w.guardians.lock()
	w.device = d
	seq := w.guardians.pair.State.Feed(wire.Now(), d.Timeout, d.File)
	unlock()
	if d.Permanent {
		w.guardians.words.add(w.guardians.log.Warn,
			"the watchdog cannot be disarmed any more (nowayout): it resets the machine some time after this supervisor stops")
	}
	if err := w.guardians.answered(ctx, seq); err != nil {
		w.mayDisarm()
		return err
	}
	w.guardians.words.add(w.guardians.log.Info, "watchdog armed", "timeout", d.Timeout)
	return nil
}

// mayDisarm wakes disarmWhenIdle: perhaps no tree needs the device.
func (w *watchdog) mayDisarm() { wait.Poke(w.idle) }

// disarmWhenIdle disarms the device when no tree needs it, until the guard has stopped.
func (w *watchdog) disarmWhenIdle() {
	for {
		select {
		case <-w.idle:
			w.disarm(context.Background(), false)
		case <-w.guardians.stopped:
			return
		}
	}
}

// disarm closes the device if no tree needs it: first the guardians do, and this process last, whose farewell then counts. It keeps
// a device that may go on counting all the same until the last moment.
func (w *watchdog) disarm(ctx context.Context, leaving bool) {
	ctx, cancel := context.WithTimeout(ctx, 5*guard.AckLimit)
	defer cancel()
	done, err := w.hold(ctx)
	if err != nil {
		return
	}
	defer done()
	unlock := w.guardians.lock()
	d := w.device
	if d == nil || d.Permanent && !leaving {
		unlock()
		return
	}
	seq, needed := w.guardians.pair.State.Unfeed(wire.Now())
	if needed {
		unlock()
		return
	}
	w.device = nil
	unlock()
	began := time.Now()
	err = errors.Join(w.guardians.answered(ctx, seq), d.Close())
	if err != nil {
		w.guardians.words.add(w.guardians.log.Error, "the watchdog may not be disarmed", "error", err)
		return
	}
	w.guardians.words.add(w.guardians.log.Info, "watchdog disarmed", "took", time.Since(began).Round(time.Millisecond))
}

// openDevice opens the watchdog, unless it may be counting for a leftover.
func (w *watchdog) openDevice(ctx context.Context, wanted Watchdog) (*device.Device, error) {
	if l, is := w.leftovers.StillLeft(); is {
		return nil, fmt.Errorf("%w: %v", box.ErrLeftover, l)
	}
	if w.leftovers.Base.Kind == box.KindCgroup {
		bounded, cancel := context.WithTimeout(ctx, box.SweepLimit/4)
		defer cancel()
		left, err := box.Sweep(bounded, w.leftovers.Base.Base, hclog.NewNullLogger())
		if err != nil {
			return nil, err
		}
		for _, o := range left {
			return nil, fmt.Errorf("%w: %v", box.ErrLeftover, o.Leftover())
		}
	}
	return w.open(wanted.Path, wanted.Timeout)
}
