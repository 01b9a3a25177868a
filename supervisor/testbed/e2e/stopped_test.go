package e2e

import (
	"strings"
	"testing"
	"time"

	"understudy/supervisor/testbed/kit"
)

// What an operator has stopped is started by nobody, not by the next supervisor either, until an operator starts it.
func TestAStoppedServiceStaysStopped(t *testing.T) {
	f := newFleet(t, 2, 5*time.Millisecond)
	a, b := f.Lab.Machine(t, "a"), f.Lab.Machine(t, "b")
	one, path := f.Serve(t, a)
	f.AllOn(t, "a", 0)
	other, _ := f.Serve(t, b)
	f.AllStand(t, "b")
	name := f.Names[0]
	if r := f.p.ask(t, nil, "start", name); r.Code != 0 || !strings.Contains(r.Out, "Nothing to do") {
		t.Errorf("started without a stop: %+v", r)
	}
	f.p.ask(t, nil, "pause", name, "--reason", "change 4711")
	if r := f.p.ask(t, nil, "stop", name, "--reason", "too old"); r.Code != 0 || !strings.HasPrefix(r.Out, "Stopped: "+name+". It was paused by ") {
		t.Errorf("stop: %+v", r)
	}
	taken := func() bool { _, taken := f.Lock(name); return taken }
	if taken() {
		t.Error("stop returns before it is stopped")
	}
	if r := f.p.ask(t, nil, "status", name, "--check"); r.Code != 6 || !strings.Contains(r.Out, "stopped by") || !strings.Contains(r.Out, "too old") {
		t.Errorf("status: %+v", r)
	}
	if r := f.p.ask(t, nil, "resume", name); r.Code != 1 || !strings.Contains(r.Err, "understudy start "+name) {
		t.Errorf("what is stopped is resumed: %+v", r)
	}
	one.Stop(t)
	one = f.FromFile(t, a, path)
	kit.Until(t, soon, "the restarted node shows that it is stopped", func() bool {
		m, ok := f.Member(name, "a")
		return ok && m.Role == "paused" && strings.Contains(m.Why, "too old")
	})
	if kit.Reached(time.Second, taken) {
		t.Error("a node has taken it")
	}
	if r := f.p.ask(t, nil, "pause", name); r.Code != 1 || !strings.Contains(r.Err, "understudy start "+name) {
		t.Errorf("what is stopped is paused: %+v", r)
	}
	if r := f.p.ask(t, nil, "start", name); r.Code != 0 || !strings.Contains(r.Out, "Started: "+name+" is active on ") || !strings.Contains(r.Out, "4711") {
		t.Errorf("start: %+v", r)
	}
	kit.Until(t, soon, "the pause is back, with its reason", func() bool {
		r := f.p.ask(t, nil, "status", name)
		return strings.Contains(r.Out, "Automatic takeovers are off (paused by ") && strings.Contains(r.Out, "change 4711")
	})
	if r := f.p.ask(t, nil, "history", name); !strings.Contains(r.Out, " stopped ") {
		t.Errorf("history: %+v", r)
	}
	one.Stop(t)
	other.Stop(t)
}
