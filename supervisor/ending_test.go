package supervisor

import (
	"context"
	"fmt"
	"testing"

	"understudy/election"
)

// A session that cannot go on is nobody's order to stop: it is not said in the history, and `run --once` goes on.
func TestASessionThatCannotGoOnIsNoOrderToStop(t *testing.T) {
	for _, why := range []error{election.ErrShortened, election.ErrTorn, election.ErrLeaseEnding, election.ErrExpired} {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(fmt.Errorf("%w: x", why))
		if over := ending(ctx); over == stopAsked {
			t.Errorf("%v is taken for %q", why, over)
		}
	}
}
