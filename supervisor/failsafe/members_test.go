package failsafe

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"understudy/election"
)

// A member that has gone still counts for a while; one that comes back with another address counts with that at once.
func TestMemberThatHasGoneIsCountedOnForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, c, moved := election.Peer{Node: "b", Machine: "m", Agent: "b:1"}, election.Peer{Node: "c"}, election.Peer{Node: "b", Machine: "n", Agent: "b:2"}
		a := attendance{gone: map[election.Peer]time.Time{}}
		for _, step := range []struct {
			wait      time.Duration
			now, want []election.Peer
		}{
			{0, []election.Peer{c, b}, []election.Peer{b, c}},
			{0, []election.Peer{c}, []election.Peer{b, c}},
			{50 * time.Second, []election.Peer{c}, []election.Peer{b, c}},
			{0, []election.Peer{b, c}, []election.Peer{b, c}},
			{50 * time.Second, []election.Peer{c}, []election.Peer{b, c}}, // it counts from anew
			{50 * time.Second, []election.Peer{c}, []election.Peer{b, c}},
			{10 * time.Second, []election.Peer{c}, []election.Peer{c}},
			{0, []election.Peer{b, c}, []election.Peer{b, c}},
			{0, []election.Peer{moved, c}, []election.Peer{moved, c}},
		} {
			time.Sleep(step.wait)
			if got := a.count(step.now, time.Minute); !slices.Equal(got, step.want) {
				t.Errorf("of %v: counted on %v, want %v", step.now, got, step.want)
			}
		}
	})
}
