package sim

import (
	"testing"
	"testing/synctest"
	"time"

	"understudy/election"
	"understudy/fencing"
)

// A supervisor that starts beside what a former one has left, and what the kernel holds, runs all its other services. The one that
// it is of runs again once that is dead.
func TestOtherServicesRunBesideALeftover(t *testing.T) {
	for name, dog := range map[string]int{"no watchdog": dogOff, "automatic watchdog": dogAutomatic, "required watchdog": dogRequired} {
		t.Run(name, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { besideALeftover(t, dog) }) })
	}
}

func besideALeftover(t *testing.T, dog int) {
	const held = 10 * time.Minute
	p := &Plan{
		Seed: 1, Nodes: 1, Hosts: 1, Services: 2, Servers: 1, SyncLimit: 5, Timeout: 6 * time.Second, Tick: time.Second, Grace: time.Second,
		StopTimeout: time.Second, Rejoin: 6 * time.Second, Order: election.Race, Fencing: fencing.Grace, Priority: make([]int, 1), Ineligible: -1,
		Programs: 1, Failsafe: make([]bool, 2), Watchdog: dog,
	}
	w := newWorld(p)
	defer w.end()
	node := w.nodes[0]
	until := func(what string, is func() bool) {
		t.Helper()
		for began := time.Now(); ; time.Sleep(100 * time.Millisecond) {
			w.mu.Lock()
			done := is()
			w.mu.Unlock()
			if done {
				return
			}
			if time.Since(began) > w.patience() {
				t.Fatalf("not within %v: %s\n%s", w.patience(), what, w.trace.last(40))
			}
		}
	}
	runs := func(service string) func() bool { return func() bool { return w.check.running(service) } }
	w.mu.Lock()
	node.start()
	w.mu.Unlock()
	until("the first runs", runs("s1"))
	until("the second runs", runs("s2"))
	w.mu.Lock()
	node.host.stuck, node.host.holds = time.Now().Add(held), "s1"
	inc := node.inc
	node.crash(true)
	for _, g := range node.host.guardians() {
		if g.of.inc == inc {
			g.die()
		}
	}
	for _, tree := range node.host.orphans() { // nobody else is there to do it
		tree.strike()
	}
	node.dog.off() // else it would reset the machine
	node.start()
	w.mu.Unlock()
	if dog == dogRequired {
		time.Sleep(w.patience())
		w.mu.Lock()
		if w.check.running("s2") || node.dog.counting {
			t.Error("the watchdog is required, and used beside a leftover")
		}
		if v := w.check.first; v != nil && v.Promise == "P3" { // the session ended, and there was no reset
			w.check.first = nil
		}
		w.mu.Unlock()
	} else {
		until("the other one runs", runs("s2"))
	}
	until("the breadcrumb tells of it", func() bool { return w.check.services["s1"].crumb.leftover })
	if w.check.running("s1") {
		t.Error("it runs beside what is left of it")
	}
	time.Sleep(time.Until(node.host.stuck))
	until("it runs again", runs("s1"))
	until("the other one runs", runs("s2"))
	if w.check.first != nil {
		t.Error(w.check.first)
	}
}
