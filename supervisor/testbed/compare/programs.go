package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/kit/tick"
)

// programs compares what keeps a program running once.
func programs() *part[*world, outcome] {
	p := &part[*world, outcome]{
		name: "programs",
		about: "One program on two hosts. It has a child of its own and a daemon, and each says every 2 ms that it runs; the times are the " +
			"program's own.",
		columns: []string{"nobody ran", "two ran", fmt.Sprintf("left of the former, %v later", looked)},
		cells:   summary,
		times:   2,
		peers:   peers,
	}
	for _, f := range faults {
		p.trials = append(p.trials, trial[*world, outcome]{f.name, func(tb testing.TB, w *world, ready func()) outcome { return onPrograms(tb, w, f, ready) }})
	}
	return p
}

// outcome is what one fault came to.
type outcome struct {
	moved   bool
	gap     time.Duration // nobody ran
	overlap time.Duration // two ran
	left    bool          // a process of the previous program was there long after
}

const (
	limit  = 25 * time.Second // for a peer to have the program run elsewhere
	looked = 5 * time.Second  // how long what runs on is watched
)

// onPrograms strikes one pair with one fault.
func onPrograms(tb testing.TB, w *world, f fault, ready func()) (o outcome) {
	w.Accounts = kit.NewAccounts(tb, w.lab)
	tb.Cleanup(func() { kit.Signal(syscall.SIGKILL, w.Processes()...) })
	hosts := []*kit.Host{w.lab.Host(tb, "a"), w.lab.Host(tb, "b")}
	var wrappers []*kit.Supervisor
	for _, h := range hosts {
		h.PowerOn(tb)
		wrappers = append(wrappers, w.start(h, append([]string{"env", "UNDERSTUDY_NODE=" + h.Name}, w.Child("children=1", "daemons=1", "every=2ms")...)))
		if h == hosts[0] {
			w.On(tb, kit.Soon, "a", 0)
		}
	}
	if !w.standing(wrappers[1]) {
		tb.Fatal("the standby does not stand by")
	}
	if n := len(w.Runs()); n != 1 {
		tb.Fatalf("the program ran %d times before the fault", n)
	}
	ready()
	f.strike(tb, hosts[0], wrappers[0])
	o.moved = kit.Reached(limit, func() bool { return began(w, "b") > 0 })
	if o.moved {
		kit.Reached(looked, func() bool { return !running(w, "a") })
	}
	if f.heal != nil {
		f.heal(tb, hosts[0], wrappers[0])
	}
	last, next := ended(w, "a"), began(w, "b")
	o.left = running(w, "a")
	if o.moved {
		o.gap, o.overlap = time.Duration(max(0, next-last)), time.Duration(max(0, last-next))
	}
	return o
}

func running(w *world, node string) bool {
	return slices.ContainsFunc(w.Running(), func(r kit.Run) bool { return r.Node == node })
}

// began is when a node's program began; 0: it has not.
func began(w *world, node string) int64 {
	for _, r := range mains(w) {
		if r.Node == node {
			return r.First
		}
	}
	return 0
}

// ended is the last sign of life of a node's program.
func ended(w *world, node string) (last int64) {
	for _, r := range mains(w) {
		if r.Node == node {
			last = max(last, r.Last)
		}
	}
	return last
}

// mains is the runs of the program, without what it forked: a peer that leaves such behind is told so in a column of its own.
func mains(w *world) []kit.Run {
	files, _ := filepath.Glob(w.File("*.tick")) // the pattern is constant
	return kit.ReadRuns(slices.DeleteFunc(files, func(file string) bool {
		id, err := tick.ParseName(file)
		return err != nil || id.Kind != "main"
	}))
}

// summary is what the table has of a peer and a fault.
func summary(seen []outcome) []string {
	var gaps, overlaps []time.Duration
	moved, left := 0, 0
	for _, o := range seen {
		if o.left {
			left++
		}
		if o.moved {
			moved++
			gaps = append(gaps, o.gap)
		}
		if o.overlap > 0 {
			overlaps = append(overlaps, o.overlap)
		}
	}
	nobody := fmt.Sprintf("not taken over (%d of %d)", len(seen)-moved, len(seen))
	if moved > 0 {
		nobody = span(gaps)
	}
	if moved > 0 && moved < len(seen) {
		nobody += fmt.Sprintf(", %d of %d", moved, len(seen))
	}
	two := "never"
	if len(overlaps) > 0 {
		two = fmt.Sprintf("%s, %d of %d", span(overlaps), len(overlaps), len(seen))
		if kit.Quantile(overlaps, 1) > looked-time.Second { // it still ran when that was over
			two = fmt.Sprintf("more than %v, %d of %d", looked, len(overlaps), len(seen))
		}
	}
	after := "nothing"
	if left > 0 {
		after = fmt.Sprintf("processes, %d of %d", left, len(seen))
	}
	return []string{nobody, two, after}
}
