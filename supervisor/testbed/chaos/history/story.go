package history

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// How much of the time around a violation its story tells.
const (
	storyBefore = 8 * time.Second
	storyAfter  = 2 * time.Second
)

// Story tells what led to a violation, in lines that say when: the faults, the runs and the roles of its service. Of more than
// so many lines it tells the last.
func (h *History) Story(v Violation, most int) (lines []string) {
	type line struct {
		at   int64
		text string
	}
	var all []line
	add := func(at int64, format string, args ...any) {
		if at >= v.At-int64(storyBefore) && at <= v.At+int64(storyAfter) {
			all = append(all, line{at, fmt.Sprintf(format, args...)})
		}
	}
	for _, b := range h.Bursts {
		for _, f := range b.Faults {
			add(f.From, "%s %s", f.Kind, f.Target)
			if f.To-f.From > int64(storyAfter)/20 {
				add(f.To, "it ends: %s", f.Kind)
			}
		}
	}
	for _, r := range h.Runs {
		if r.Service == v.Service {
			add(r.First, "%s runs, token %d", r.Node, r.Token)
			add(r.Last, "%s is last seen, token %d", r.Node, r.Token)
		}
	}
	for _, r := range h.Roles {
		if r.Service == v.Service {
			add(r.At, "%s %s -> %s (%s)", r.Node, r.From, r.To, r.Why)
		}
	}
	slices.SortStableFunc(all, func(a, b line) int { return cmp.Compare(a.at, b.at) })
	for _, l := range all[max(0, len(all)-most):] {
		lines = append(lines, fmt.Sprintf("%8.3f %s", h.Since(l.at), l.text))
	}
	return lines
}
