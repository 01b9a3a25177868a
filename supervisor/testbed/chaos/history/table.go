package history

import (
	"slices"
	"time"

	"understudy/supervisor/testbed/kit/store"
)

// The rows of the table that are no kinds of faults.
const (
	Several = "several of them at once"
	Nothing = "no fault before it"
)

// Row is what a kind of fault did.
type Row struct {
	Kind  string
	Count int
	Gaps  []time.Duration // while no program of a service ran, where this fault alone explains it
}

// Gap is a time in which no program of a service ran, between two runs.
type Gap struct {
	Service  string
	From, To int64
	Kind     string // of the fault that explains it
}

// Gaps lists all gaps, by service and in the order of time.
func (h *History) Gaps() (all []Gap) {
	for _, service := range h.Setup.Services {
		runs := h.Of(service)
		for i := 1; i < len(runs); i++ {
			all = append(all, Gap{service, runs[i-1].Last, runs[i].First, h.why(service, runs[i-1].Node, runs[i-1].Last)})
		}
	}
	return all
}

// slack is how much later than its effect a fault may have been noted, and sudden how soon it has one if it kills.
const (
	slack  = int64(20 * time.Millisecond)
	sudden = int64(300 * time.Millisecond)
)

// why tells which fault ended a node's run of a service: one of the newest burst that had begun, and that did not befall
// another node or service. One that struck here just now explains more than others that have gone on for a while.
func (h *History) why(service, node string, at int64) string {
	kind := Nothing
	for _, b := range h.Bursts {
		if len(b.Faults) == 0 {
			continue // nothing could strike
		}
		if b.Faults[0].From > at+slack {
			break
		}
		kind = Nothing
		for _, f := range b.Faults {
			here := f.Node != "" || f.Service != ""
			switch {
			case f.From > at+slack || f.Node != "" && f.Node != node || f.Service != "" && f.Service != service:
			case here && at-f.From < sudden:
				kind = f.Kind
			case kind == Nothing || kind == f.Kind:
				kind = f.Kind
			default:
				kind = Several
			}
		}
	}
	return kind
}

// Table counts the faults by kind, and the gaps that each explains.
func (h *History) Table() []Row {
	var rows []*Row
	row := func(kind string) *Row {
		for _, r := range rows {
			if r.Kind == kind {
				return r
			}
		}
		rows = append(rows, &Row{Kind: kind})
		return rows[len(rows)-1]
	}
	for _, name := range h.Setup.Kinds {
		row(name)
	}
	for _, b := range h.Bursts {
		for _, f := range b.Faults {
			row(f.Kind).Count++
		}
	}
	for _, g := range h.Gaps() {
		r := row(g.Kind)
		r.Gaps = append(r.Gaps, time.Duration(g.To-g.From))
	}
	all := make([]Row, 0, len(rows))
	for _, r := range rows {
		all = append(all, *r)
	}
	return all
}

// Totals is what there was altogether.
type Totals struct {
	Faults, Bursts, Runs, Activations int
	Taken, Refused                    int
	Wait                              time.Duration // the longest one although somebody could have run
	WaitFor                           string        // the service
	Idle                              time.Duration // the longest gap of all
}

// Totals counts.
func (h *History) Totals() Totals {
	t := Totals{Bursts: len(h.Bursts), Runs: len(h.Runs)}
	for _, b := range h.Bursts {
		t.Faults += len(b.Faults)
	}
	type activation struct {
		service string
		token   int64
	}
	seen := map[activation]bool{}
	for _, r := range h.Runs {
		seen[activation{r.Service, r.Token}] = true
	}
	t.Activations = len(seen)
	for _, w := range h.Writes {
		switch w.Verdict {
		case store.Taken:
			t.Taken++
		case store.Old:
			t.Refused++
		}
	}
	for _, service := range h.Setup.Services {
		if wait, _ := h.Waits(service); wait > t.Wait {
			t.Wait, t.WaitFor = wait, service
		}
	}
	if gaps := h.Gaps(); len(gaps) > 0 {
		t.Idle = time.Duration(slices.MaxFunc(gaps, func(a, b Gap) int { return int(a.To - a.From - b.To + b.From) }).length())
	}
	return t
}

func (g Gap) length() int64 { return g.To - g.From }
