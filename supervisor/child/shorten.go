package child

import (
	"context"
	"errors"
	"fmt"
	"time"

	"understudy/supervisor/child/wire"
	"understudy/supervisor/guard"
)

// Shorten moves the epoch's deadline to an earlier point, and returns when both guardians know of it. From then on its trees' deaths
// must be proved at most w.After after that, and a watchdog is useful only with a timeout of w.Timeout or less: an armed one is set
// to that. On an error the caller has to end the epoch: a guardian may not know of it, or the watchdog resets this machine soon.
func (g *Guard) Shorten(ctx context.Context, number uint64, deadline time.Duration, w Watchdog) error {
	told, err := g.guardians.shorten(number, deadline, w)
	defer g.guardians.forget(told)
	if err == nil {
		err = g.watchdog.refit(ctx, number, deadline, w)
	}
	if err == nil || errors.Is(err, guard.ErrMisfit) {
		err = errors.Join(err, g.guardians.answered(ctx, told))
	}
	if err != nil {
		return fmt.Errorf("shorten epoch %d: %w", number, err)
	}
	return nil
}

func (g *guardians) shorten(number uint64, deadline time.Duration, w Watchdog) (seq uint64, err error) {
	defer g.lock()()
	return g.pair.Ledger.Shorten(wire.Now(), number, deadline, w.fit())
}

// fit is the requirement for a watchdog.
func (w Watchdog) fit() guard.Fit { return guard.Fit{Timeout: w.Timeout, After: w.After} }

// refit sets an armed watchdog to a shorter timeout. That feeds it once, so refit does not do it when it is too late for that.
func (w *watchdog) refit(ctx context.Context, number uint64, deadline time.Duration, to Watchdog) error {
	timeout := w.timeout()
	if timeout == 0 {
		return nil
	}
	bounded, cancel := context.WithTimeout(ctx, timeout/4)
	defer cancel()
	err := func() error {
		done, err := w.hold(bounded)
		if err != nil {
			return err
		}
		defer done()
		defer w.guardians.lock()()
		if needed, err := w.guardians.pair.Ledger.Refit(wire.Now(), deadline, to.fit()); err != nil || !needed {
			return err
		}
		if err := w.retime(w.device, to.Timeout); err != nil {
			return err
		}
		w.guardians.words.say(w.guardians.log.Info, "watchdog set to a shorter timeout", "timeout", w.device.Timeout)
		w.guardians.pair.Ledger.Retime(w.device.Timeout)
		return nil
	}()
	if err == nil {
		return nil
	}
	// Nobody feeds it any more. Its trees will be dead, and the device disarmed, before it resets the machine.
	if now := w.timeout(); now > 0 {
		timeout = min(timeout, now)
	}
	again, e := w.guardians.shorten(number, min(deadline, wire.Now()+timeout/2), to)
	if e != nil {
		return e
	}
	w.guardians.forget(again) // a guardian that got the first one gets this one soon, or is killed
	return fmt.Errorf("%w: %w", guard.ErrMisfit, err)
}

// timeout is the armed watchdog's timeout, which may become shorter; 0: there is none.
func (w *watchdog) timeout() time.Duration {
	defer w.guardians.look()()
	return w.guardians.pair.Ledger.Fed()
}
