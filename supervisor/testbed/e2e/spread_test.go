package e2e

import (
	"testing"
	"time"
)

// A service goes to a node that has no other one of its word, and to one that has if there is no other.
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
	if r := f.p.ask(t, nil, "switchover", f.Names[0], "--to", "b"); r.Code != 0 {
		t.Fatalf("%+v", r)
	}
	one.Kill9()
	if run := f.Of[f.Names[1]].Next(t, soon, last); run.Node != "c" {
		t.Errorf("after a was lost it runs on %s, where the other one is", run.Node)
	}
	two.Stop(t)
	f.AllOn(t, "c", 0)
}
