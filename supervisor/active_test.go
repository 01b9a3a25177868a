package supervisor

import (
	"context"
	"testing"
)

// P7: a term that is to end starts nothing more, were it only to stop it.
func TestNothingIsStartedAgainOnceTheTermEnds(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	end()
	for range 1000 {
		if (&service{}).patient(ctx, 0) {
			t.Fatal("it would be started again")
		}
	}
}
