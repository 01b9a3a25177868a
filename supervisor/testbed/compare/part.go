package main

import (
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"understudy/supervisor/testbed/kit"
)

// peer is a tool that takes part. W is the hosts on which it meets one fault.
type peer[W any] struct {
	name     string
	settings string
	needs    []string // programs
	version  func() string
	servers  func(tb testing.TB) func(tb testing.TB) W // starts what it needs, once
}

// lacks is the programs that are not on this machine.
func (p *peer[W]) lacks() (missing []string) {
	for _, name := range p.needs {
		if _, err := exec.LookPath(name); err != nil {
			missing = append(missing, name)
		}
	}
	return missing
}

// trial is one fault. O is what it came to. What is to be struck calls ready once it is, which comes back when it is its turn.
type trial[W, O any] struct {
	name   string
	strike func(tb testing.TB, w W, ready func()) O
}

// strikesApart is how far the strikes of a trial are from each other: what takes a tenth of a second is not measured beside another's.
const strikesApart = 250 * time.Millisecond

// part is what is compared among some peers.
type part[W, O any] struct {
	name    string
	about   string
	columns []string
	cells   func(seen []O) []string // of a peer and a fault
	times   int                     // how often each fault befalls, unless the flag says
	close   func()                  // ends what the peers share; nil: nothing
	peers   []*peer[W]
	trials  []trial[W, O]
}

// comparison is a part of any kind.
type comparison interface {
	title() string
	run(times int, only, fault string) (ok bool)
}

func (p *part[W, O]) title() string { return p.name }

// run prints a line for each fault and peer. All peers meet a fault within a second, once all are ready, so the machine does the same beside
// each of them.
func (p *part[W, O]) run(times int, only, fault string) (ok bool) {
	began := time.Now()
	if times == 0 {
		times = p.times
	}
	if p.close != nil {
		defer p.close()
	}
	fmt.Printf("\n== %s ==\n%s\n", p.name, p.about)
	ok = true
	var there []*peer[W]
	starts := map[*peer[W]]func(tb testing.TB) W{}
	for _, one := range p.peers {
		if !strings.Contains(one.name, only) {
			continue
		}
		if lacks := one.lacks(); len(lacks) > 0 {
			fmt.Printf("\n%s: left out, there is no %s here\n", one.name, strings.Join(lacks, ", "))
			continue
		}
		servers := &kit.Program{}
		defer servers.Close()
		start, started := attempt(servers, one.servers)
		if !started {
			ok = false
			continue
		}
		fmt.Printf("\n%s (%s)\n  %s\n", one.name, one.version(), one.settings)
		there, starts[one] = append(there, one), start
	}
	line := func(name string, cells []string) {
		fmt.Printf("  %-26s", name)
		for _, cell := range cells {
			fmt.Printf(" %-32s", cell)
		}
		fmt.Println()
	}
	fmt.Println()
	line("", p.columns)
	for _, t := range p.trials {
		if !strings.Contains(t.name, fault) {
			continue
		}
		seen := make([][]O, len(there))
		for range times {
			var all, preparing sync.WaitGroup
			preparing.Add(len(there))
			for i, one := range there {
				all.Go(func() {
					tb := &kit.Program{}
					defer tb.Close()
					prepared := sync.OnceFunc(preparing.Done)
					defer prepared() // also if it never was ready
					ready := func() {
						prepared()
						preparing.Wait()
						time.Sleep(time.Duration(i) * strikesApart)
					}
					if o, done := attempt(tb, func(tb testing.TB) O { return t.strike(tb, starts[one](tb), ready) }); done {
						seen[i] = append(seen[i], o)
					}
				})
			}
			all.Wait()
		}
		fmt.Println(t.name)
		for i, one := range there {
			ok = ok && len(seen[i]) == times
			line(one.name, p.cells(seen[i]))
		}
	}
	fmt.Printf("%s: %v\n", p.name, time.Since(began).Round(time.Second))
	return ok
}

// attempt reports whether f came to its end. A failure was printed by then.
func attempt[T any](tb *kit.Program, f func(tb testing.TB) T) (result T, done bool) {
	defer func() {
		if tb.Failed() {
			_ = recover()
			done = false
		}
	}()
	return f(tb), true
}

// span is the median and the extremes, of two these alone.
func span(all []time.Duration) string {
	round := func(q float64) time.Duration { return kit.Quantile(all, q).Round(time.Millisecond) }
	switch {
	case round(0) == round(1):
		return round(0).String()
	case len(all) < 3:
		return fmt.Sprintf("%v to %v", round(0), round(1))
	}
	return fmt.Sprintf("%v (%v to %v)", round(0.5), round(0), round(1))
}
