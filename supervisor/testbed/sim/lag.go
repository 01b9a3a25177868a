package sim

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// In half of the seeds guardians learn late of what happens: of their supervisor's end, of a process's, and that a timer has rung, as where
// all processors are busy.

// lags draws how late at most, and where that counts: a node is cut off that has something to undo, for longer than others wait for it. It
// has a stream of its own: the others are what they were.
func (p *Plan) lags() {
	r := rand.New(rand.NewPCG(p.Seed, 43))
	p.Lag = pick(r, 0, 0, 50*time.Millisecond, 500*time.Millisecond)
	if p.Lag == 0 || p.Undo == 0 {
		return
	}
	for i := range p.Episodes {
		if r.IntN(2) > 0 {
			continue
		}
		e := &p.Episodes[i]
		f := Fault{Kind: CutLink, Active: true, Node: r.IntN(p.Nodes), Server: -1, N: r.IntN(1 << 16), At: drawn(r, e.Length)}
		f.For = p.Timeout + p.Grace + p.Undo + drawn(r, 2*p.Timeout)
		e.Length = max(e.Length, f.At+f.For)
		e.Faults = append(e.Faults, f)
		sortFaults(e.Faults)
	}
}

// lag is that of a node's guardians: a tenth of its lease at most.
func (p *Plan) lag(node int) time.Duration { return min(p.Lag, p.lease(node)/10) }

// late does something as late as the guardian learns of it.
func (g *guardian) late(most time.Duration, do func()) {
	if most <= 0 {
		do()
		return
	}
	// Who comes first at one moment is up to the scheduler, so the moment gives the delay, not the order.
	r := g.w.stream(fmt.Sprint(g.node.name, " ", g.birth, " learns late at ", time.Since(g.w.began)))
	if d := drawn(r, most); d > 0 {
		g.w.after(d, do)
		return
	}
	do()
}

// lag is how late the guardian learns of a death at most.
func (g *guardian) lag() time.Duration { return g.w.plan.lag(g.node.index) }

// rings is how late it notices a timer at most: a twentieth of a lease after its end another node may start the program. And a watchdog is
// fed for the last time a 160th of a lease before it is too late for that.
func (g *guardian) rings() time.Duration {
	if g.w.plan.Watchdog != watchdogOff {
		return min(g.lag()/4, g.w.plan.lease(g.node.index)/320)
	}
	return g.lag() / 4
}
