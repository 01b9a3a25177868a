package service

import (
	"testing"

	"understudy/election"
	"understudy/fencing"
)

// The history names who has confirmed a death, and only where that was the proof. The next activation removes the note.
func TestWhoConfirmedADeathIsNamed(t *testing.T) {
	n := &newInbox(&LocalNode{}, Conf{}, nil, nil).intents
	for by, want := range map[string]string{
		fencing.ByConfirmed: "confirmed by me@op", string(election.NoBreadcrumb): "confirmed by me@op", fencing.ByGrace: fencing.ByGrace, "exec": "exec",
	} {
		n.now.Control.Confirmed = nil
		if got := n.confirmed(by); got != by {
			t.Errorf("%s becomes %s without a confirmation", by, got)
		}
		n.now.Control.Confirmed = &election.Confirmed{Node: "a", Token: 7, By: "me@op"}
		got := n.confirmed(by)
		if got != want || election.Proof(got).Confirmed() != (want == "confirmed by me@op") {
			t.Errorf("%s becomes %s, want %s", by, got, want)
		}
	}
	c := n.control()
	if n.late(7) || !n.late(8) || !n.answer(8)(&c) || c.Confirmed != nil {
		t.Errorf("the note stays: %+v", c.Confirmed)
	}
}
