package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/kit/tick"
)

// report is what a run prints, to stdout and to its file.
type report struct {
	began int64

	lines    sync.Mutex // guards the fields below
	out      io.Writer
	findings []string
}

func newReport(file io.Writer) *report {
	return &report{out: io.MultiWriter(os.Stdout, file), began: tick.Now()}
}

func (r *report) say(format string, args ...any) {
	r.lines.Lock()
	defer r.lines.Unlock()
	fmt.Fprintln(r.out, strings.TrimRight(fmt.Sprintf(format, args...), " "))
}

// clock is a moment as minutes and seconds since the beginning.
func (r *report) clock(at int64) string {
	d := time.Duration(at - r.began)
	return fmt.Sprintf("%3d:%04.1f", int(d.Minutes()), (d % time.Minute).Seconds())
}

// find notes a finding, once.
func (r *report) find(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	r.lines.Lock()
	defer r.lines.Unlock()
	if !slices.Contains(r.findings, text) {
		r.findings = append(r.findings, text)
		fmt.Fprintf(r.out, "%s  FINDING %s\n", r.clock(tick.Now()), text)
	}
}

// found is the number of findings so far.
func (r *report) found() int {
	r.lines.Lock()
	defer r.lines.Unlock()
	return len(r.findings)
}

// verdict prints all findings, and returns their number.
func (r *report) verdict() int {
	for _, text := range r.findings {
		r.say("FINDING %s", text)
	}
	r.say("%d findings", len(r.findings))
	return len(r.findings)
}

// struck is the line of a fault that has struck. World.mu is held.
func (w *world) struck(s *stroke) {
	w.bursts[len(w.bursts)-1] = append(w.bursts[len(w.bursts)-1], s)
	length := ""
	if s.most > 0 {
		length = fmt.Sprintf("%4.1f s", s.last.Seconds())
	}
	w.say("%s  %-36s %-26s %s", w.clock(s.at), s.name, s.target, length)
}

// table prints how often each kind struck, and the times in which no program of a service ran, by the fault before them.
func (w *world) table(kinds []*fault) {
	times, gaps, runs := map[string]int{}, map[string][]time.Duration{}, 0
	for _, b := range w.bursts {
		for _, s := range b {
			times[s.name]++
		}
	}
	for _, s := range w.services {
		all := s.Runs()
		runs += len(all)
		for i := 1; i < len(all); i++ {
			name := w.cause(all[i-1].Last)
			gaps[name] = append(gaps[name], kit.Gap(all[i-1], all[i]))
		}
	}
	w.say("\n%-38s %5s %5s %9s %9s", "fault", "times", "gaps", "median", "longest")
	for _, f := range append(kinds, &fault{name: fencedOff}, &fault{name: several}) {
		if times[f.name]+len(gaps[f.name]) == 0 {
			continue
		}
		line := fmt.Sprintf("%-38s %5d %5d", f.name, times[f.name], len(gaps[f.name]))
		if all := gaps[f.name]; len(all) > 0 {
			line += fmt.Sprintf(" %7.2f s %7.2f s", kit.Median(all).Seconds(), slices.Max(all).Seconds())
		}
		w.say("%s", line)
	}
	w.say("\n%d bursts of faults, %d runs of programs", len(w.bursts), runs)
}

const (
	fencedOff = "host powered off by fencing"
	several   = "several at once"
)

// cause is the fault of the newest burst that had begun at a moment, if only one had.
func (w *world) cause(at int64) (name string) {
	for _, b := range w.bursts {
		for i, s := range b {
			switch {
			case s.at > at:
			case i == 0 || name == s.name:
				name = s.name
			default:
				name = several
			}
		}
	}
	return name
}
