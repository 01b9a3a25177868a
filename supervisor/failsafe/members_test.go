package failsafe

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"understudy/election"
)

// Whoever may take the service has to promise from then on, also if others could not be read for a while.
func TestEachNodeThatComesIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, c := election.Peer{Node: "b", Machine: "m", Agent: "b:1"}, election.Peer{Node: "c"}
		g, claim := ended(&deadlines{}), &election.Claim{Roll: &election.Roll{}}
		ctx, cancel := context.WithCancel(t.Context())
		expect := func(want ...election.Peer) {
			t.Helper()
			if got, _ := claim.Roll.Counted(); !slices.Equal(got, want) {
				t.Errorf("counted on %v, want %v", got, want)
			}
		}
		reads := 0
		g.Count(ctx, "db", claim, func(ctx context.Context, tell func([]election.Peer)) error {
			if reads++; reads == 1 {
				tell([]election.Peer{b})
				expect(b)
				return errors.New("no answer")
			}
			tell([]election.Peer{b, c})
			expect(b, c)
			cancel()
			return ctx.Err()
		})
		if reads != 2 {
			t.Errorf("read %d times", reads)
		}
	})
}
