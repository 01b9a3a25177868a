package history

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestViolationHasItsStory(t *testing.T) {
	h := well()
	h.Runs[1].Token = 6
	h.Bursts = []Burst{{Faults: []Fault{
		{Kind: "cable pulled", Target: "b", From: 2 * second, To: 3 * second}, // long ago
		{Kind: "supervisor killed -9", Target: "a", From: 20*second - ms, To: 21 * second},
	}}}
	h.Roles = []Role{
		{At: 20*second + 3*ms, Node: "b", Service: "db", From: "standby", To: "active", Why: "the former is dead"},
		{At: 20*second + 4*ms, Node: "b", Service: "other", From: "standby", To: "active"},
	}
	wrong := h.tokens()
	if len(wrong) != 1 {
		t.Fatalf("%+v", wrong)
	}
	want := []string{
		"  19.999 supervisor killed -9 a",
		"  20.000 a is last seen, token 7",
		"  20.003 b standby -> active (the former is dead)",
		"  20.005 b runs, token 6",
		"  21.000 it ends: supervisor killed -9",
	}
	if diff := cmp.Diff(want, h.Story(wrong[0], 9)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(want[3:], h.Story(wrong[0], 2)); diff != "" {
		t.Error(diff)
	}
}
