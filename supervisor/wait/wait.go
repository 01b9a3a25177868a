// Package wait has what every waiting loop needs.
package wait

import (
	"context"
	"time"
)

// For waits, and reports whether it did so to the end. It reports false if ctx has ended already, however short the wait.
func For(ctx context.Context, d time.Duration) bool {
	if ctx.Err() != nil {
		return false
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// Closed reports whether a channel that never carries a value is closed.
func Closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// Poke signals on a channel of capacity 1.
func Poke(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Call calls f, which knows no context and may hang, and returns what that returns, or the cause of ctx's end if it comes first. Then late,
// unless it is nil, gets what f returns.
func Call[T any](ctx context.Context, f func() (T, error), late func(T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	got := make(chan answer, 1)
	go func() {
		v, err := f()
		got <- answer{v, err}
	}()
	select {
	case a := <-got:
		return a.value, a.err
	case <-ctx.Done():
	}
	if late != nil {
		go func() {
			a := <-got
			late(a.value, a.err)
		}()
	}
	var none T
	return none, context.Cause(ctx)
}
