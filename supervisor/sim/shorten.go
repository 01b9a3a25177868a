package sim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"understudy/supervisor/child"

	"understudy/supervisor/guard"
)

var errMisfit = errors.New("the watchdog's timeout does not fit the shorter lease")

// Shorten implements supervisor.Guard.
func (g *keeper) Shorten(ctx context.Context, number uint64, deadline time.Duration, w child.Watchdog) error {
	if !g.inc.pass() {
		return errCrashed
	}
	told, err := g.shorten(number, deadline, w)
	if err == nil {
		err = g.refit(ctx, number, deadline, w)
	}
	if err == nil || errors.Is(err, errMisfit) {
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
	e := g.epochs[number]
	if e == nil {
		return 0, errUnknownEpoch
	}
	if err := g.live(e); err != nil {
		return 0, err
	}
	if e.deadline > 0 {
		e.deadline = min(e.deadline, deadline)
	}
	e.fits = &w
	for _, t := range e.trees {
		t.after = min(t.after, w.After)
	}
	g.w.say("%s: lease %d is shortened", g.inc.node.name, number)
	g.seq++
	seq = g.seq
	g.broadcast(&guard.Message{Op: guard.OpShorten, Epoch: number, Deadline: deadline, Grace: w.After, Seq: seq})
	return seq, nil
}

func (g *keeper) refit(ctx context.Context, number uint64, deadline time.Duration, w child.Watchdog) error {
	g.w.mu.Lock()
	d := g.dog
	g.w.mu.Unlock()
	if d == nil {
		return nil
	}
	bounded, cancel := context.WithTimeout(ctx, d.timeout/4)
	defer cancel()
	done, err := g.dogTurn(bounded)
	if err == nil {
		err = g.retime(deadline, w)
		done()
	}
	if err == nil {
		return nil
	}
	if _, e := g.shorten(number, min(deadline, g.inc.node.host.now()+d.timeout/2), w); e != nil {
		return e
	}
	return fmt.Errorf("%w: %w", errMisfit, err)
}

func (g *keeper) retime(deadline time.Duration, w child.Watchdog) error {
	if !g.inc.pass() {
		return errCrashed
	}
	g.w.mu.Lock()
	defer g.w.mu.Unlock()
	if g.dog == nil || g.dog.timeout <= w.Timeout {
		return nil
	}
	if w.Timeout < time.Second || g.inc.node.host.now()+w.Timeout > deadline+w.After {
		return errors.New("the lease is too short for one")
	}
	g.dog.timeout = w.Timeout
	g.dog.write(false)
	g.w.say("%s: watchdog set to %v", g.inc.node.name, w.Timeout)
	g.broadcast(&guard.Message{Op: guard.OpWatchdog, Grace: g.dog.timeout, Along: g.dog})
	return nil
}
