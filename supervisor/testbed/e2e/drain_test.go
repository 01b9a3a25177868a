package e2e

import (
	"slices"
	"strings"
	"testing"
	"time"

	"understudy/supervisor/testbed/kit"
)

// What is drained gives all away, and takes nothing, not even where no other node is left, until it is told to; a restart changes nothing.
func TestADrainedNodeStaysOut(t *testing.T) {
	f := newFleet(t, 3, 5*time.Millisecond)
	a, b := f.Lab.Machine(t, "a"), f.Lab.Machine(t, "b")
	one, path := f.Serve(t, a)
	last := f.AllOn(t, "a", 0)
	if r := f.p.ask(t, nil, "drain", "a"); r.Code != 1 || !strings.Contains(r.Err, "no other node could take "+f.Names[0]) {
		t.Errorf("the only node is drained: %+v", r)
	}
	other, _ := f.Serve(t, b)
	f.AllStand(t, "b")
	var drained struct {
		Drained, Changed bool
		Services         []struct{ Service, To string }
	}
	f.p.ask(t, &drained, "drain", "a", "--wait", "--reason", "new disks", "--json")
	if !drained.Drained || !drained.Changed || len(drained.Services) != 3 || drained.Services[2].To != "b" {
		t.Errorf("%+v", drained)
	}
	last = f.AllOn(t, "b", last)
	one.Stop(t)
	one = f.FromFile(t, a, path)
	out := func() bool {
		return !slices.ContainsFunc(f.Names, func(name string) bool {
			m, ok := f.Member(name, "a")
			return !ok || m.Role != "standby" || m.Health != "unfit" || !strings.Contains(m.Why, "new disks")
		})
	}
	kit.Until(t, soon, "the restarted node stays out", out)
	if r := f.p.ask(t, nil, "status"); !strings.Contains(r.Out, "a is drained by ") {
		t.Errorf("%+v", r)
	}
	other.Stop(t)
	if kit.Reached(time.Second, func() bool { _, taken := f.Lock(f.Names[0]); return taken }) {
		t.Error("the drained node has taken it")
	}
	if !out() || !one.Running() {
		t.Error("it does not stand by any more")
	}
	if r := f.p.ask(t, nil, "undrain", "a"); r.Code != 0 {
		t.Errorf("%+v", r)
	}
	f.AllOn(t, "a", last)
	if r := f.p.ask(t, nil, "undrain", "a"); r.Code != 0 || !strings.Contains(r.Out, "Nothing to do") {
		t.Errorf("%+v", r)
	}
	one.Stop(t)
	for _, name := range append([]string{"a"}, f.Names...) {
		if r := f.p.ask(t, nil, "forget", name); r.Code != 0 { // it was known until then
			t.Errorf("forget %s: %+v", name, r)
		}
	}
}
