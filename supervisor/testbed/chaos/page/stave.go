package page

import (
	"fmt"
	"html/template"
	"math"
	"time"

	"understudy/supervisor/testbed/chaos/history"
)

// stave is one minute: the faults above, and a lane for each service on each node.
type stave struct {
	Number          int
	From, To        string
	Faults          int
	Open            bool
	Labels, Picture template.HTML
}

const (
	minute    = int64(time.Minute)
	perSecond = 18.0 // pixels
	staveWide = 60 * perSecond
	laneHi    = 8.0
	faultHi   = 15.0
	between   = 9.0 // services
	axisHi    = 18.0
	letter    = 5.6 // the width of one, about
)

func staveOf(h *history.History, at int64) int { return int(max(0, at-h.Began) / minute) }

func staves(h *history.History, notable map[int]bool) (all []stave) {
	number := staveOf(h, h.Ended-1) + 1
	for i := range number {
		d := drawing{h: h, from: h.Began + int64(i)*minute}
		d.to = d.from + minute
		s := d.stave()
		s.Number, s.Open = i, number <= 12 || notable[i]
		s.From, s.To = fmt.Sprintf("%d:00", i), fmt.Sprintf("%d:00", i+1)
		all = append(all, s)
	}
	return all
}

// drawing is a stave that is being drawn.
type drawing struct {
	svg
	h        *history.History
	from, to int64
}

func (d *drawing) x(at int64) float64 {
	at = min(max(at, d.from), d.to)
	return staveWide * float64(at-d.from) / float64(minute)
}

func (d *drawing) seen(from, to int64) bool { return to >= d.from && from < d.to }

func (d *drawing) bar(class string, from, to int64, y, hi, least float64, title string) {
	if d.seen(from, to) {
		d.rect(class, d.x(from), y, math.Max(least, d.x(to)-d.x(from)), hi, title)
	}
}

func (d *drawing) stave() stave {
	faults := d.pack()
	rows := 1
	for _, f := range faults {
		rows = max(rows, f.row+1)
	}
	top := axisHi + float64(rows)*faultHi + between
	hi := top + float64(len(d.h.Setup.Services))*(laneHi*float64(len(d.h.Setup.Nodes))+between)
	d.open("lanes", staveWide, hi, false)
	for s := 0; s <= 60; s += 5 {
		x := float64(s) * perSecond
		d.line("grid", x, axisHi-4, hi)
		d.text("axis", x+2, axisHi-7, fmt.Sprintf("%d s", s))
	}
	for _, b := range d.h.Bursts {
		d.bar("healing", b.Healed, b.Well, axisHi, hi-axisHi, 0.5, "healing until everything is well again")
	}
	for i, service := range d.h.Setup.Services {
		d.service(service, top+float64(i)*(laneHi*float64(len(d.h.Setup.Nodes))+between))
	}
	for _, f := range faults {
		d.fault(f, hi)
	}
	picture := d.done()
	return stave{Faults: len(faults), Labels: d.labels(top, hi), Picture: picture}
}

func (d *drawing) labels(top, hi float64) template.HTML {
	var s svg
	s.open("labels", 86, hi, false)
	s.text("lane", 2, axisHi+10, "faults")
	for i, service := range d.h.Setup.Services {
		y := top + float64(i)*(laneHi*float64(len(d.h.Setup.Nodes))+between)
		s.text("lane", 2, y+laneHi*1.5+4, service)
		for j, node := range d.h.Setup.Nodes {
			s.text("node t"+nodeClass(d.h, node), 76, y+laneHi*float64(j+1)-1, node)
		}
	}
	return s.done()
}

// service draws a lane for each node; nobody running is red across all of them.
func (d *drawing) service(service string, y float64) {
	hi := laneHi * float64(len(d.h.Setup.Nodes))
	d.bar("ground", d.h.Began, d.h.Ended, y, hi, 0, "")
	lane := map[string]float64{}
	for i, node := range d.h.Setup.Nodes {
		lane[node] = y + laneHi*float64(i)
	}
	for _, g := range d.h.Gaps() {
		length := time.Duration(g.To - g.From)
		if g.Service != service || !d.seen(g.From, g.To) {
			continue
		}
		d.bar("gap", g.From, g.To, y, hi, 1, fmt.Sprintf("nobody ran %s for %s: %s", service, short(length), g.Kind))
		if wide := d.x(g.To) - d.x(g.From); wide > 26 {
			d.text("gaptext", d.x(g.From)+wide/2, y+hi/2+3.5, short(length))
		}
	}
	for _, w := range d.waits(service) {
		d.bar("fencing", w.from, w.to, lane[w.node]+2, laneHi-4, 1, "fencing the former active")
	}
	for _, r := range d.h.Of(service) {
		title := fmt.Sprintf("%s on %s, token %d: %s to %s", service, r.Node, r.Token, clock(d.h, r.First), clock(d.h, r.Last))
		d.bar(nodeClass(d.h, r.Node), r.First, r.Last, lane[r.Node]+0.5, laneHi-1, 1.5, title)
	}
}

// wait is a node's time in the role of fencing.
type wait struct {
	node     string
	from, to int64
}

func (d *drawing) waits(service string) (all []wait) {
	since := map[string]int64{}
	for _, r := range d.h.Roles {
		if r.Service != service {
			continue
		}
		if at, ok := since[r.Node]; ok {
			all = append(all, wait{r.Node, at, r.At})
			delete(since, r.Node)
		}
		if r.To == "fencing" {
			since[r.Node] = r.At
		}
	}
	return all
}

// placed is a fault with the row that has room for it.
type placed struct {
	history.Fault
	row int
}

// pack gives each fault the first row where neither bar nor words hide another's.
func (d *drawing) pack() (all []placed) {
	var free []float64
	for _, b := range d.h.Bursts {
		for _, f := range b.Faults {
			if !d.seen(f.From, f.To) {
				continue
			}
			x := d.x(f.From)
			end := math.Max(d.x(f.To), d.textAt(f)+letter*float64(len(label(f)))) + 6
			row := 0
			for row < len(free) && free[row] > math.Min(x, d.textAt(f)) {
				row++
			}
			if row == len(free) {
				free = append(free, 0)
			}
			free[row] = end
			all = append(all, placed{f, row})
		}
	}
	return all
}

// textAt is where a fault's words begin: within the picture.
func (d *drawing) textAt(f history.Fault) float64 {
	return math.Min(d.x(f.From)+4, staveWide-letter*float64(len(label(f)))-2)
}

func (d *drawing) fault(f placed, hi float64) {
	y := axisHi + float64(f.row)*faultHi
	if f.From >= d.from {
		d.line("strike", d.x(f.From), y, hi)
	}
	d.bar("fault", f.From, f.To, y, faultHi-3, 2, label(f.Fault))
	d.text("what", d.textAt(f.Fault), y+9.5, label(f.Fault))
}
