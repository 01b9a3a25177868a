package service

import (
	"slices"
	"testing"

	"understudy/election"
	"understudy/fencing"
	"understudy/fencing/agent"
)

// Metrics count by these words.
func TestTheWordsOfAllMethodsAreKnown(t *testing.T) {
	for _, method := range []string{
		fencing.ByGrace, fencing.ByConfirmed, agent.Method{}.Name(), fencing.Exec{}.Name(), fencing.FenceAgent{}.Name(), fencing.HTTP{}.Name(), fencing.SSH{}.Name(),
	} {
		if !slices.Contains(election.ProofMethods, method) {
			t.Errorf("%s is not among %q", method, election.ProofMethods)
		}
	}
}
