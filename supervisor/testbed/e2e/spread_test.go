package e2e

import (
	"testing"
	"time"
)

// Two services of one word go to two nodes when the node that had both is lost, and to one if there is no other.
func TestServicesWithOneWordGoToDifferentNodes(t *testing.T) {
	f := newFleet(t, 2, 5*time.Millisecond)
	for _, name := range f.Names {
		f.Keys[name] = "spread: jvm"
	}
	a, b, c := f.Lab.Machine(t, "a"), f.Lab.Machine(t, "b"), f.Lab.Machine(t, "c")
	one, _ := f.Serve(t, a)
	last := f.AllOn(t, "a", 0)
	two, _ := f.Serve(t, b)
	f.AllStand(t, "b")
	f.Serve(t, c)
	f.AllStand(t, "c")
	one.Kill9()
	on := map[string]int{}
	for _, name := range f.Names {
		run := f.Of[name].Next(t, soon, last)
		on[run.Node]++
	}
	if on["b"] != 1 || on["c"] != 1 {
		t.Errorf("after a was lost: %v", on)
	}
	two.Stop(t)
	f.AllOn(t, "c", 0)
}
