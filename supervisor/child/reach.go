package child

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

// Reach counts the calls that hang with a file system.
type Reach struct{ hung atomic.Int32 }

// Reached calls f, which may hang with a file system. Nobody can interrupt that, but Reached stops waiting: P6, otherwise a service would
// hang for as long, and nobody could stop it. late gets a result that comes when nobody waits any more.
func Reached[T any](ctx context.Context, r *Reach, f func() (T, error), late func(T)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	var none T
	if r.hung.Load() >= mostHung {
		return none, fmt.Errorf("%w, for a long time", ErrNoAnswer)
	}
	got := make(chan answer, 1)
	var settled atomic.Bool
	r.hung.Add(1)
	go func() {
		defer r.hung.Add(-1)
		v, err := f()
		if settled.CompareAndSwap(false, true) {
			got <- answer{v, err}
		} else if err == nil && late != nil {
			late(v)
		}
	}()
	limit := time.NewTimer(reachPatience)
	defer limit.Stop()
	why := fmt.Errorf("%w: waited for %v", ErrNoAnswer, reachPatience)
	select {
	case a := <-got:
		return a.value, a.err
	case <-limit.C:
	case <-ctx.Done():
		why = context.Cause(ctx)
	}
	if settled.CompareAndSwap(false, true) {
		return none, why
	}
	a := <-got
	return a.value, a.err
}
