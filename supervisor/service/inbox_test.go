package service

import (
	"context"
	"errors"
	"testing"

	"understudy/supervisor/wait"
)

// A preferred node's return, or an operator's order, is told once: whoever misses it waits for ever.
func TestNewsThatComesAsAWaitEndsIsNotLost(t *testing.T) {
	for range 1000 {
		n := newInbox(Conf{})
		err := n.untilStirred(t.Context(), func(context.Context) error {
			wait.Poke(n.stir)
			return nil
		})
		if errors.Is(err, errStirred) {
			continue
		}
		select {
		case <-n.stir:
		default:
			t.Fatal("it is lost")
		}
	}
}
