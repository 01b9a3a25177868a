package page

import (
	"fmt"
	"html"
	"html/template"
	"math"
	"strings"
	"time"

	"understudy/supervisor/testbed/chaos/history"
)

// svg collects elements.
type svg struct{ strings.Builder }

func (s *svg) rect(class string, x, y, w, h float64, title string) {
	fmt.Fprintf(s, `<rect class="%s" x="%.1f" y="%.1f" width="%.1f" height="%.1f">`, class, x, y, w, h)
	if title != "" {
		fmt.Fprintf(s, "<title>%s</title>", html.EscapeString(title))
	}
	s.WriteString("</rect>")
}

func (s *svg) line(class string, x, from, to float64) {
	fmt.Fprintf(s, `<path class="%s" d="M%.1f %.1fV%.1f"/>`, class, x, from, to)
}

func (s *svg) text(class string, x, y float64, text string) {
	fmt.Fprintf(s, `<text class="%s" x="%.1f" y="%.1f">%s</text>`, class, x, y, html.EscapeString(text))
}

// open begins an image; stretched ones take the width that there is.
func (s *svg) open(class string, w, h float64, stretched bool) {
	if stretched {
		fmt.Fprintf(s, `<svg class="%s" viewBox="0 0 %.0f %.0f" preserveAspectRatio="none" height="%.0f">`, class, w, h, h)
		return
	}
	fmt.Fprintf(s, `<svg class="%s" width="%.0f" height="%.0f">`, class, w, h)
}

func (s *svg) done() template.HTML {
	s.WriteString("</svg>")
	return template.HTML(s.String())
}

// The overview: one row a service, coloured by who ran it, red where nobody did; below it a tick a fault.
const (
	wide   = 2000.0
	rowHi  = 16.0
	barHi  = 12.0
	tickHi = 18.0
)

func overview(h *history.History) template.HTML {
	var s svg
	s.open("over", wide, rowHi*float64(len(h.Setup.Services))+tickHi, true)
	at := func(t int64) float64 { return wide * float64(t-h.Began) / float64(h.Ended-h.Began) }
	for i, service := range h.Setup.Services {
		y := rowHi * float64(i)
		s.rect("gap", 0, y, wide, barHi, "")
		for _, r := range h.Of(service) {
			s.rect(nodeClass(h, r.Node), at(r.First), y, math.Max(1, at(r.Last)-at(r.First)), barHi,
				fmt.Sprintf("%s on %s, token %d, %s", service, r.Node, r.Token, clock(h, r.First)))
		}
		for _, g := range h.Gaps() { // too short to be seen at their true width
			if g.Service == service {
				s.rect("gap", at(g.From), y, math.Max(1.5, at(g.To)-at(g.From)), barHi,
					fmt.Sprintf("nobody ran %s for %s", service, short(time.Duration(g.To-g.From))))
			}
		}
	}
	y := rowHi * float64(len(h.Setup.Services))
	for _, b := range h.Bursts {
		for _, f := range b.Faults {
			s.rect("fault", at(f.From), y, math.Max(2, at(f.To)-at(f.From)), tickHi-4, label(f))
		}
	}
	return s.done()
}

func nodeClass(h *history.History, node string) string {
	for i, n := range h.Setup.Nodes {
		if n == node {
			return fmt.Sprint("n", i)
		}
	}
	return "n0"
}

func label(f history.Fault) string {
	text := f.Kind
	if f.Target != "" {
		text += ": " + f.Target
	}
	if d := time.Duration(f.To - f.From); d > 50*time.Millisecond {
		text += ", " + short(d)
	}
	return text
}

// dots shows durations on a logarithmic scale from 10 ms to 20 s.
func dots(all []time.Duration) template.HTML {
	const w, hi = 200.0, 16.0
	var s svg
	s.open("dots", w, hi, false)
	at := func(d time.Duration) float64 {
		x := math.Log10(math.Max(1, d.Seconds()/0.01)) / math.Log10(2000)
		return 4 + (w-8)*math.Min(1, x)
	}
	for _, d := range []time.Duration{10 * time.Millisecond, 100 * time.Millisecond, time.Second, 10 * time.Second} {
		s.line("grid", at(d), 0, hi)
	}
	for _, d := range all {
		fmt.Fprintf(&s, `<circle class="dot" cx="%.1f" cy="8" r="3.2"><title>%s</title></circle>`, at(d), short(d))
	}
	return s.done()
}
