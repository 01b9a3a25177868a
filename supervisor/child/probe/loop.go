package probe

import (
	"context"
	"errors"
	"fmt"
	"time"

	"understudy/supervisor/wait"
)

// Checker is what is looked at; a Probe is one.
type Checker interface {
	Check(ctx context.Context) error
}

// Config is the rhythm of a Watch.
type Config struct {
	StartDelay time.Duration // before the first check
	Interval   time.Duration // from the start of one check to the start of the next
	Timeout    time.Duration // of one check
	Failures   int           // in a row that make a program unhealthy; at least 1
}

// Report is what one check showed. A program counts as healthy until it has failed often enough.
type Report struct {
	Healthy  bool
	Failures int // in a row
	Err      error
}

// ErrHung is in the Err of a report about a check that did not end when it was told to. Until it ends there is no other.
var ErrHung = errors.New("the check hangs")

const (
	linger     = 500 * time.Millisecond // for a check to end once it was told to, as when it kills what it started
	readyFirst = 20 * time.Millisecond
	readyEvery = 500 * time.Millisecond
	readyCheck = 5 * time.Second // the longest that one look at readiness may take
)

// Watch checks until ctx ends, and calls report after every check. A check that hangs when ctx ends is left to itself.
func Watch(ctx context.Context, cfg Config, c Checker, report func(Report)) error {
	if cfg.Interval <= 0 || cfg.Timeout <= 0 {
		return fmt.Errorf("watch: an interval of %v and a timeout of %v are impossible", cfg.Interval, cfg.Timeout)
	}
	if !wait.For(ctx, cfg.StartDelay) {
		return nil
	}
	r := Report{Healthy: true}
	var under check
	for {
		began := time.Now()
		err := under.look(ctx, cfg.Timeout, c)
		if ctx.Err() != nil {
			return nil
		}
		r.count(cfg, err)
		report(r)
		if !wait.For(ctx, time.Until(began.Add(cfg.Interval))) {
			return nil
		}
	}
}

func (r *Report) count(cfg Config, err error) {
	r.Err = err
	if err == nil {
		r.Failures, r.Healthy = 0, true
		return
	}
	r.Failures++
	r.Healthy = r.Healthy && r.Failures < max(1, cfg.Failures)
}

// check is one that may hang.
type check struct {
	done  chan error // of the one under way; nil: none
	began time.Time
}

// look does one check, and comes back whether or not that does. As long as one hangs it does no other.
func (u *check) look(ctx context.Context, timeout time.Duration, c Checker) error {
	if u.done != nil && !u.ended(ctx, timeout) {
		return errHangs(time.Since(u.began))
	}
	bounded, cancel := context.WithTimeout(ctx, timeout)
	u.done, u.began = make(chan error, 1), time.Now()
	done := u.done
	go func() { // waited for below; if it hangs, by the next look
		defer cancel()
		done <- c.Check(bounded)
	}()
	select {
	case err := <-done:
		u.done = nil
		return err
	case <-bounded.Done():
	}
	lingering := time.NewTimer(linger)
	defer lingering.Stop()
	select {
	case err := <-done:
		u.done = nil
		return err
	case <-lingering.C:
		return errHangs(time.Since(u.began))
	}
}

func errHangs(since time.Duration) error {
	return fmt.Errorf("%w: it has not ended for %v", ErrHung, since.Round(10*time.Millisecond))
}

// ended waits a while for one that hangs. Its result is too old to count.
func (u *check) ended(ctx context.Context, patience time.Duration) bool {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-u.done:
		u.done = nil
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	return false
}

// over tells whether the time is up, also where ctx has not noticed it yet, as after a standstill of the machine.
func over(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ctx.Err() != nil || ok && !time.Now().Before(deadline)
}

// WaitReady checks, quickly at first and then every half second, until all is well (nil) or ctx or the timeout ends, which
// the error says together with the last reason. A timeout of zero is none.
func WaitReady(ctx context.Context, timeout time.Duration, c Checker) error {
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, timeout, fmt.Errorf("not ready within %v", timeout))
		defer cancel()
	}
	var last error
	var under check
	for every := readyFirst; ; every = min(2*every, readyEvery) {
		err := under.look(ctx, readyCheck, c)
		if err == nil {
			return nil
		}
		if !over(ctx) || last == nil {
			last = err
		}
		if !wait.For(ctx, every) {
			if last == nil {
				return context.Cause(ctx)
			}
			return fmt.Errorf("%w: %w", context.Cause(ctx), last)
		}
	}
}
