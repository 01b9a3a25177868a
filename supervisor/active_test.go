package supervisor

import (
	"context"
	"testing"

	"understudy/election"
)

// P7: a term that is to end starts nothing more, were it only to stop it.
func TestNothingIsStartedAgainOnceTheTermEnds(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	end()
	v := &service{says: make(chan election.Member, 1), observer: unobserved{}}
	for range 1000 {
		if v.backOff(ctx, 0, nothingYet) == nothingYet {
			t.Fatal("it would be started again")
		}
	}
}
