package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/kit/tick"
)

// pause is an order that automatic takeovers be off, and its end, as ZooKeeper counts its changes: a token is one of them.
type pause struct {
	service  string
	from, to int64
}

// outlives is how much longer than its supervisor a program may run: the guardians kill it when the lease ends, if not before.
// It is generous to a machine that has other work.
const outlives = lease + 3*time.Second

// judge checks everything so far. World.mu is held.
func (w *world) judge() {
	for _, s := range w.services {
		s.CheckOverlap(finder{w.Program, w.report})
		s.CheckTokens(finder{w.Program, w.report})
		for _, text := range promoted(s.name, s.Runs(), w.pauses) {
			w.find("promoted: %s: %s", s.name, text)
		}
	}
}

// steps checks all that was committed, and all starts, by the servers' logs.
func (w *world) steps() {
	var all []kit.Run
	for _, s := range w.services {
		all = append(all, s.Runs()...)
	}
	w.look.CheckSteps(finder{w.Program, w.report}, w.stage.ZK, all, false)
}

// finder is a testing.TB whose errors are findings.
type finder struct {
	*kit.Program
	report *report
}

func (f finder) Errorf(format string, args ...any) { f.report.find(format, args...) }

// promoted finds activations of a service that was paused.
func promoted(service string, runs []kit.Run, pauses []pause) (all []string) {
	for _, p := range pauses {
		for _, r := range runs {
			if p.service == service && p.from < r.Token && r.Token < p.to {
				all = append(all, fmt.Sprintf("token %d on %s, although paused from %d to %d", r.Token, r.Node, p.from, p.to))
			}
		}
	}
	return all
}

// running is the newest run of each service that runs.
func (w *world) running() map[string]kit.Run {
	all := map[string]kit.Run{}
	for _, s := range w.services {
		for _, r := range s.running() {
			all[s.name] = r
		}
	}
	return all
}

// late is how long after a fault it may still have a consequence: an operator's order stands until its timeout.
const late = orderTimeout + 3*sec

// quiet waits until nothing happens any more, so that what happens next is the next fault's doing.
func (w *world) quiet() {
	time.Sleep(late) // nothing else shows that an order or a fault has no consequence any more
	if missing := w.wait(w.wanting); missing != "" {
		w.find("stuck: %v without a fault, and still not %s", progress, missing)
	}
}

// untouched finds programs that harmless faults touched, unless the machine stood still for so long that a lease may have ended.
func (w *world) untouched(before map[string]kit.Run) {
	if still := w.stood(); still > lease/4 {
		w.say("        not judged for calm: the machine stood still for %v", still)
	} else if text := touched(before, w.running()); text != "" {
		w.find("touched: harmless faults alone, but %s", text)
	}
}

// touched gives a service whose run is another one than before.
func touched(before, now map[string]kit.Run) string {
	for service, was := range before {
		if is := now[service]; is.ID != was.ID {
			return fmt.Sprintf("%s with token %d on %s gave way to token %d on %q", service, was.Token, was.Node, is.Token, is.Node)
		}
	}
	return ""
}

// leaked finds what is left when all supervisors have ended.
func (w *world) leaked() {
	for _, n := range w.nodes {
		var pids []string
		if !kit.Reached(outlives, func() bool {
			all, _ := exec.Command("ip", "netns", "pids", filepath.Base(n.host.Network())).Output()
			pids = slices.DeleteFunc(strings.Fields(string(all)), func(pid string) bool { return pid == strconv.Itoa(os.Getpid()) }) // a thread of ours has been there
			return len(pids) == 0
		}) {
			w.find("leaked: processes on %s after the end: %q", n.name, pids)
		}
	}
	for _, s := range w.services {
		if lock, ok := w.look.Lock(s.name); ok {
			w.find("leaked: the lock of %s on %s", s.name, lock.Node)
		}
		if !w.look.NoBreadCrumb(s.name) {
			w.find("leaked: the record of the active node of %s", s.name)
		}
	}
}

// bury finds programs of a node that outlive its supervisor, which has ended just now.
func (w *world) bury(n *node) {
	at := tick.Now()
	time.Sleep(outlives) // what ends in time is never wrong, so no earlier look counts
	for _, s := range w.services {
		for _, r := range s.running() {
			if r.Node == n.name && r.First < at {
				w.find("orphan: %s with token %d on %s runs %v after its supervisor", s.name, r.Token, r.Node, outlives)
			}
		}
	}
}
