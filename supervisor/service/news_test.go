package service

import (
	"context"
	"errors"
	"testing"
)

// A preferred node's return, or an operator's order, is told once: a service that misses it waits for ever.
func TestNewsThatComesAsAWaitEndsIsNotLost(t *testing.T) {
	for range 1000 {
		n := newNews()
		err := n.unless(t.Context(), func(context.Context) error {
			n.wake()
			return nil
		})
		if errors.Is(err, errNews) {
			continue
		}
		select {
		case <-n:
		default:
			t.Fatal("it is lost")
		}
	}
}
