package cli

import (
	"testing"

	"understudy/supervisor/control"
)

// What no node can take is down once the drain is ordered: whoever forces that reads it before the telephone rings.
func TestADrainTellsWhatMovesStopsAndStays(t *testing.T) {
	leaving := []control.Departure{{Service: "a"}, {Service: "b", Stops: "f is standby, drained by me"}, {Service: "c", Stays: true}}
	want := "Drained: g takes no service until `understudy undrain g`.\n" +
		"  a moves to another node.\n" +
		"  b STOPS: no other node can take it (f is standby, drained by me).\n" +
		"  c stays there, because it is paused.\n"
	if got := tellDrain("g", true, false, leaving); got != want {
		t.Errorf("%s", got)
	}
}
