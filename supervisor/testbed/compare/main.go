// Command compare has Understudy and its peers keep the same program running once on two hosts, strikes each with the same faults, and
// prints how long nobody ran, how long two did, and what was left behind. A peer whose programs are not on this machine is left out, and
// said so; see peers.go for the Debian packages.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/kit/tick"
)

func main() { os.Exit(run()) }

func run() (code int) {
	times := flag.Int("n", 3, "how often each peer is struck by each fault")
	only := flag.String("only", "", "compare only peers whose name contains this word")
	flag.Parse()
	began := time.Now()
	defer kit.RemoveBinaries()
	fmt.Println("Two hosts with networks of their own, servers on hosts of their own, one machine. Each peer as its manual shows it; times after the fault.")
	fmt.Println("The program has a child of its own and a daemon, and each says every 2 ms that it runs; the times are the program's own.")
	for _, p := range peers {
		if !strings.Contains(p.name, *only) {
			continue
		}
		if lacks := p.lacks(); len(lacks) > 0 {
			fmt.Printf("\n%s: left out, there is no %s here\n", p.name, strings.Join(lacks, ", "))
			continue
		}
		if !compare(p, *times) {
			code = 1
		}
	}
	fmt.Printf("\ncompared in %v\n", time.Since(began).Round(time.Second))
	return code
}

// compare strikes one peer with each fault, and prints a table.
func compare(p *peer, times int) (ok bool) {
	servers := &kit.Program{}
	defer servers.Close()
	defer func() {
		if servers.Failed() {
			_ = recover() // it was told already
			ok = false
		}
	}()
	fmt.Printf("\n%s (%s)\n  %s\n", p.name, p.version(), p.settings)
	start := p.servers(servers)
	fmt.Printf("  %-26s %-34s %-34s %s\n", "fault", "nobody ran", "two ran", fmt.Sprintf("left of the former, %v later", looked))
	ok = true
	for _, f := range faults {
		var seen []outcome
		for range times {
			o, done := once(start, f)
			ok = ok && done
			if done {
				seen = append(seen, o)
			}
		}
		fmt.Printf("  %-26s %s\n", f.name, summary(seen))
	}
	return ok
}

// outcome is what one fault came to.
type outcome struct {
	moved   bool
	gap     time.Duration // nobody ran
	overlap time.Duration // two ran
	left    bool          // a process of the former program was there long after
}

const (
	limit  = 30 * time.Second // for a peer to have the program run elsewhere
	looked = 10 * time.Second // how long what runs on is watched
)

// once strikes one pair with one fault.
func once(start starter, f fault) (o outcome, ok bool) {
	tb := &kit.Program{}
	defer tb.Close()
	defer func() {
		if tb.Failed() {
			_ = recover() // it was told already
			ok = false
		}
	}()
	w := start(tb)
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
	return o, true
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

// summary is a line of the table.
func summary(seen []outcome) string {
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
		if kit.Quantile(overlaps, 1) >= looked {
			two = fmt.Sprintf("more than %v, %d of %d", looked, len(overlaps), len(seen))
		}
	}
	after := "nothing"
	if left > 0 {
		after = fmt.Sprintf("processes, %d of %d", left, len(seen))
	}
	return fmt.Sprintf("%-34s %-34s %s", nobody, two, after)
}

func span(all []time.Duration) string {
	round := func(q float64) time.Duration { return kit.Quantile(all, q).Round(time.Millisecond) }
	if round(0) == round(1) {
		return round(0).String()
	}
	return fmt.Sprintf("%v (%v to %v)", round(0.5), round(0), round(1))
}
