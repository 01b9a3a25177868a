package sim

import (
	"fmt"
	"strings"
	"time"
)

// summary adds reports up, in the order of their seeds: whoever goes on from its next seed counts nothing twice.
type summary struct {
	began         time.Time
	first, next   uint64
	early         map[uint64]*report // those that came before their turn
	seeds, starts int
	doomed        int
	resets        int
	leftovers     int
	kept, dropped int // programs that outlasted their session
	virtual       time.Duration
	calm          time.Duration // without a fault for ten minutes and more
	units         float64
	slowest       float64
	faults        map[Kind]int
	planned       map[Kind]int
	cover         Coverage
	broken        int
}

func newSummary(first uint64) *summary {
	return &summary{
		began: time.Now(), first: first, next: first, early: map[uint64]*report{}, faults: map[Kind]int{}, planned: map[Kind]int{}, cover: Coverage{},
	}
}

// take adds a report, and what waited for it.
func (s *summary) take(r *report) (added []*report) {
	s.early[r.Seed] = r
	for {
		r := s.early[s.next]
		if r == nil {
			return added
		}
		delete(s.early, s.next)
		s.next++
		s.add(r)
		added = append(added, r)
	}
}

func (s *summary) add(r *report) {
	s.seeds++
	s.virtual += r.Virtual
	s.calm += r.Calm
	s.units += r.Units
	s.starts += r.Starts
	s.doomed += r.Doomed
	s.resets += r.Resets
	s.leftovers += r.Left
	s.kept += r.Kept
	s.dropped += r.Dropped
	s.slowest = max(s.slowest, r.Slowest)
	s.cover.add(r.Cover)
	for k, n := range r.Faults {
		s.faults[k] += n
	}
	for k, n := range r.Planned {
		s.planned[k] += n
	}
	if r.Broken != "" {
		s.broken++
	}
}

func (s *summary) total() (n int) {
	for _, k := range s.faults {
		n += k
	}
	return n
}

// line is where it has got to.
func (s *summary) line() string {
	took := time.Since(s.began)
	return fmt.Sprintf("seeds %d to %d: %.0f virtual hours in %v (%.0f a minute), %d faults, %d violations; go on with -seed %d",
		s.first, s.next-1, s.virtual.Hours(), took.Round(time.Second), s.virtual.Hours()/took.Minutes(), s.total(), s.broken, s.next)
}

// String is everything.
func (s *summary) String() string {
	var b strings.Builder
	fmt.Fprintln(&b, s.line())
	fmt.Fprintf(&b, "%.0f session timeouts; %.1f faults an hour; %.0f hours are stretches of ten minutes and more without a new fault\n",
		s.units, float64(s.total())/s.virtual.Hours(), s.calm.Hours())
	fmt.Fprintf(&b, "%d starts of a child, %d of them beside one that was killed but held by its kernel; %d breadcrumbs that told of one; %d resets by watchdogs; at most "+
		"%.1f session timeouts from the end of all faults to a running child\n", s.starts, s.doomed, s.leftovers, s.resets, s.slowest)
	fmt.Fprintf(&b, "%d programs outlasted their session and kept their lock; %d ended, though nobody had claimed it\n", s.kept, s.dropped)
	for _, k := range Counted() {
		fmt.Fprintf(&b, "  %-58s %9d of %d planned\n", k, s.faults[k], s.planned[k])
	}
	b.WriteString("transitions of a role:\n")
	b.WriteString(s.cover.String())
	return b.String()
}
