package sim

import (
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"understudy/election"
	"understudy/fencing"
	"understudy/supervisor/child"
)

// A supervisor that starts beside what a previous one has left, and what the kernel holds, runs all its other services. The one that
// it is of runs again once that is dead.
func TestOtherServicesRunBesideALeftover(t *testing.T) {
	for name, watchdog := range map[string]int{"no watchdog": watchdogOff, "automatic watchdog": watchdogAutomatic, "required watchdog": watchdogRequired} {
		t.Run(name, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { besideALeftover(t, watchdog) }) })
	}
}

// What the breadcrumb says to be alive may die while no supervisor is there to see it. The next one of that machine proves it and takes
// the breadcrumb away, though nobody is to be promoted: whoever is next, anywhere, has nothing to wait for.
func TestALeftoverThatDiedUnseenIsProvedDead(t *testing.T) {
	for name, unseen := range map[string]func(h *host){
		"its supervisor was down": func(*host) {},
		"its machine has booted":  func(h *host) { h.powerOff(); h.powerOn() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := leftoverPlan(watchdogOff)
				p.Order = election.Queue
				w := newWorld(p)
				defer w.course.end()
				node := w.nodes[0]
				until := watching(t, w)
				crumb := func() crumbView { return w.check.services["s1"].crumb }
				w.mu.Lock()
				node.start()
				w.mu.Unlock()
				until("it runs", func() bool { return w.check.running("s1") })
				w.leave(node)
				until("the breadcrumb tells of it", func() bool { return crumb().leftover })
				w.operator.order("s1", true)
				w.mu.Lock()
				node.crash(true)
				unseen(node.host)
				w.mu.Unlock()
				time.Sleep(time.Until(node.host.stuck))
				until("nothing of it is alive", func() bool { return len(w.check.services["s1"].living) == 0 })
				w.mu.Lock()
				if !crumb().leftover {
					t.Error("the breadcrumb has gone before anybody was there")
				}
				if node.inc == nil {
					node.start()
				}
				w.mu.Unlock()
				until("the breadcrumb is gone", func() bool { return !crumb().there })
				if w.check.first != nil {
					t.Error(w.check.first)
				}
			})
		})
	}
}

// What was killed ends by that alone, however long its kernel holds it: not by itself, with success, nor by an earlier SIGTERM.
func TestWhatWasKilledDoesNotEndByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(leftoverPlan(watchdogOff))
		defer w.course.end()
		until := watching(t, w)
		w.mu.Lock()
		w.nodes[0].start()
		w.mu.Unlock()
		until("it runs", func() bool { return w.check.running("s1") })
		w.mu.Lock()
		defer w.mu.Unlock()
		host := w.nodes[0].host
		host.stuck, host.holds = time.Now().Add(kernelHolds), "s1"
		for p := range w.check.services["s1"].living {
			p.nature.ignoresTERM, p.nature.yields = false, time.Second
			p.leaving = w.after(2*time.Second, func() { p.die(child.ExitStatus{}) })
			p.term()
			p.kill()
			w.mu.Unlock()
			<-p.done
			w.mu.Lock()
			if p.status.Signal != syscall.SIGKILL || time.Now().Before(host.stuck) {
				t.Errorf("%v ended %v before its kernel let go of it, with %v", p, time.Until(host.stuck), p.status)
			}
		}
	})
}

// leave crashes the supervisor and the guardians of a node whose kernel holds what they ran of a service, and starts it again.
func (w *world) leave(n *node) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n.host.stuck, n.host.holds = time.Now().Add(kernelHolds), "s1"
	inc := n.inc
	n.crash(true)
	for _, g := range n.host.guardians() {
		if g.of.inc == inc {
			g.die()
		}
	}
	for _, tree := range n.host.orphans() { // nobody else is there to do it
		tree.strike()
	}
	n.watchdog.off() // else it would reset the machine
	n.start()
}

// kernelHolds is for how long a kernel holds what is left.
const kernelHolds = 10 * time.Minute

func leftoverPlan(watchdog int) *Plan {
	return &Plan{
		Seed: 1, Nodes: 1, Hosts: 1, Services: 2, Servers: 1, SyncLimit: 5, Timeout: 6 * time.Second, Tick: time.Second, Grace: time.Second,
		StopTimeout: time.Second, Rejoin: 6 * time.Second, Order: election.Race, Fencing: fencing.Grace, Priority: make([]int, 1), Ineligible: -1,
		Programs: 1, Failsafe: make([]bool, 2), Watchdog: watchdog,
	}
}

// watching waits for what is to be seen in a world, in time.
func watching(t *testing.T, w *world) func(what string, is func() bool) {
	return func(what string, is func() bool) {
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
}

func besideALeftover(t *testing.T, watchdog int) {
	w := newWorld(leftoverPlan(watchdog))
	defer w.course.end()
	node := w.nodes[0]
	until := watching(t, w)
	runs := func(service string) func() bool { return func() bool { return w.check.running(service) } }
	w.mu.Lock()
	node.start()
	w.mu.Unlock()
	until("the first runs", runs("s1"))
	until("the second runs", runs("s2"))
	w.leave(node)
	if watchdog == watchdogRequired {
		time.Sleep(w.patience())
		w.mu.Lock()
		if w.check.running("s2") || node.watchdog.counting {
			t.Error("the watchdog is required, and used beside a leftover")
		}
		if v := w.check.first; v != nil && strings.Contains(v.String(), "P3") { // the session ended, and there was no reset
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
