package wait

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// ErrNoAnswer says that a file system does not answer, for example because its server is gone.
var ErrNoAnswer = errors.New("the file system does not answer")

const (
	reachPatience = 10 * time.Second
	mostHung      = 64 // each holds a thread
)

// Stuck counts the threads of this process that no signal ends, in the kernel. An exec waits for them.
var Stuck atomic.Int32

var errKept = errors.New("another process keeps it locked in the kernel")

// Aside calls f, which closes what another process may keep locked, such as a pipe, and waits no longer than d for it.
func Aside(d time.Duration, f func() error) error {
	Stuck.Add(1)
	ended := make(chan error, 1)
	go func() {
		err := f()
		Stuck.Add(-1)
		ended <- err
	}()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case err := <-ended:
		return err
	case <-timer.C:
		return errKept
	}
}

// Reach counts the calls that hang in the kernel, as with a file system.
type Reach struct{ hung atomic.Int32 }

// Hung reports whether a call hangs.
func (r *Reach) Hung() bool { return r.hung.Load() > 0 }

// Full reports whether so many calls hang that there should be no more.
func (r *Reach) Full() bool { return r.hung.Load() >= mostHung }

// Leave calls f, which may hang but has to be called, and returns when f has, or the cause of ctx's end if that comes first.
func (r *Reach) Leave(ctx context.Context, f func()) error {
	r.hung.Add(1)
	_, err := Call(ctx, func() (struct{}, error) {
		defer r.hung.Add(-1)
		f()
		return struct{}{}, nil
	}, nil)
	return err
}

// Reached calls f, which may hang with a file system. Nobody can interrupt that, but Reached stops waiting: P6, otherwise a service would
// hang for as long, and nobody could stop it. late gets a result that comes when nobody waits any more.
func Reached[T any](ctx context.Context, r *Reach, f func() (T, error), late func(T)) (T, error) {
	if r.Full() {
		var none T
		return none, fmt.Errorf("%w, for a long time", ErrNoAnswer)
	}
	bounded, cancel := context.WithTimeoutCause(ctx, reachPatience, fmt.Errorf("%w: waited for %v", ErrNoAnswer, reachPatience))
	defer cancel()
	r.hung.Add(1)
	return Call(bounded, func() (T, error) {
		defer r.hung.Add(-1)
		return f()
	}, func(v T, err error) {
		if err == nil && late != nil {
			late(v)
		}
	})
}
