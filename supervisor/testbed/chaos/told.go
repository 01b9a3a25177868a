package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"understudy/supervisor/testbed/chaos/history"
)

// What a run prints while it goes on.

// clock is a moment as minutes and seconds from the beginning.
func (rc *record) clock(at int64) string {
	d := time.Duration(at - rc.past.Began)
	return fmt.Sprintf("%3d:%04.1f", int(d.Minutes()), (d % time.Minute).Seconds())
}

func (rc *record) tell(f history.Fault) {
	last := ""
	if d := time.Duration(f.To - f.From); d > moment {
		last = fmt.Sprintf("%4.1f s", d.Seconds())
	}
	rc.say("%s  %-36s %-22s %s", rc.clock(f.From), f.Kind, f.Target, last)
}

func (rc *record) tellHealed(h *history.History) {
	var gaps []string
	began := rc.burst.Healed
	for _, f := range rc.burst.Faults {
		began = min(began, f.From)
	}
	longest := time.Duration(0)
	for _, g := range h.Gaps() {
		if g.From > began-int64(moment) {
			gaps = append(gaps, g.Service)
			longest = max(longest, time.Duration(g.To-g.From))
		}
	}
	slices.Sort(gaps)
	gaps = slices.Compact(gaps)
	text := "nothing stopped"
	if len(gaps) > 0 {
		text = fmt.Sprintf("%d of %d stopped, %.2f s at most", len(gaps), len(h.Setup.Services), longest.Seconds())
	}
	healing := time.Duration(rc.burst.Well - rc.burst.Healed)
	rc.say("%s    well again after %.1f s; %s", rc.clock(rc.burst.Well), healing.Seconds(), text)
}

// say prints a line of 80 columns at most.
func (w *world) say(format string, args ...any) {
	line := strings.TrimRight(fmt.Sprintf(format, args...), " ")
	if len(line) > 80 {
		line = line[:79] + "~"
	}
	fmt.Println(line)
}
