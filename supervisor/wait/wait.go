// Package wait has the three small things that whatever waits needs.
package wait

import (
	"context"
	"time"
)

// For waits, and tells whether it waited to the end.
func For(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// Closed tells whether a channel that only ever is closed has been.
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
