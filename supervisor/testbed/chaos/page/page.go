// Package page draws the report of a run of chaos: one HTML file that needs nothing else.
package page

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"slices"
	"time"

	"understudy/supervisor/testbed/chaos/history"
)

//go:embed page.html
var source string

var whole = template.Must(template.New("page").Parse(source))

// view is what the page shows.
type view struct {
	Good      bool
	Overlaps  int
	Wrong     []wrong
	Seed      uint64
	Length    string
	Totals    history.Totals
	Wait      string
	Allowed   string
	Tick      time.Duration
	Services  []string
	Overview  template.HTML
	Kinds     []kind
	Longest   []gap
	Staves    []stave
	Nodes     []string
	AxisMarks []mark
}

type wrong struct {
	What, Service, Text, At string
	Stave                   int
}

type kind struct {
	history.Row
	Median, Longest string
	Dots            template.HTML
}

type gap struct {
	Service, Length, At, Kind string
	Stave                     int
}

type mark struct {
	Text string
	Left float64 // percent
}

// Write writes the page.
func Write(w io.Writer, h *history.History, violations []history.Violation) error {
	v := view{
		Good: len(violations) == 0, Seed: h.Setup.Seed, Length: short(time.Duration(h.Ended - h.Began)), Totals: h.Totals(),
		Allowed: short(h.Setup.Bounds.Progress), Tick: h.Setup.Bounds.Tick, Services: h.Setup.Services, Nodes: h.Setup.Nodes,
		Overview: overview(h), Kinds: kindsOf(h), Longest: longest(h), AxisMarks: axis(h),
	}
	v.Wait = short(v.Totals.Wait)
	for _, bad := range violations {
		if bad.What == "overlap" {
			v.Overlaps++
		}
		v.Wrong = append(v.Wrong, wrong{bad.What, bad.Service, bad.Text, clock(h, bad.At), staveOf(h, bad.At)})
	}
	v.Staves = staves(h, notable(v))
	return whole.Execute(w, v)
}

// notable is the staves that are worth being open when there are many.
func notable(v view) map[int]bool {
	open := map[int]bool{}
	for _, w := range v.Wrong {
		open[w.Stave] = true
	}
	for _, g := range v.Longest[:min(3, len(v.Longest))] {
		open[g.Stave] = true
	}
	return open
}

func kindsOf(h *history.History) (all []kind) {
	for _, r := range h.Table() {
		k := kind{Row: r, Dots: dots(r.Gaps)}
		if len(r.Gaps) > 0 {
			sorted := slices.Sorted(slices.Values(r.Gaps))
			k.Median, k.Longest = short(sorted[len(sorted)/2]), short(sorted[len(sorted)-1])
		}
		all = append(all, k)
	}
	return all
}

// longest is the gaps that lasted longest, one of each burst.
func longest(h *history.History) (all []gap) {
	gaps := h.Gaps()
	slices.SortFunc(gaps, func(a, b history.Gap) int { return int(b.To - b.From - a.To + a.From) })
	seen := map[int64]bool{}
	for _, g := range gaps {
		burst := int64(0)
		for _, b := range h.Bursts {
			if b.Well <= g.From {
				burst = b.Well
			}
		}
		if seen[burst] {
			continue
		}
		seen[burst] = true
		all = append(all, gap{g.Service, short(time.Duration(g.To - g.From)), clock(h, g.From), g.Kind, staveOf(h, g.From)})
		if len(all) == 6 {
			break
		}
	}
	return all
}

func axis(h *history.History) (all []mark) {
	length := time.Duration(h.Ended - h.Began)
	step := time.Minute
	for length/step > 12 {
		step *= 5
	}
	for at := time.Duration(0); at < length; at += step {
		all = append(all, mark{fmt.Sprintf("%d min", int(at.Minutes())), 100 * float64(at) / float64(length)})
	}
	return all
}

func clock(h *history.History, at int64) string {
	d := time.Duration(at - h.Began)
	return fmt.Sprintf("%d:%04.1f", int(d.Minutes()), (d % time.Minute).Seconds())
}

func short(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
}
