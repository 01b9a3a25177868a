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
