package sim

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// In one of so many seeds the configs of nodes differ: in the session timeout, the grace delay, and in what may outlast ZooKeeper.
const (
	unequalIn   = 4
	unequalFrom = 1
)

// unequal is how nodes differ; the zero value says that they do not.
type unequal struct {
	Timeouts []time.Duration // of sessions; the plan's is the longest
	Graces   []time.Duration // the plan's is the longest
	Stops    []bool          // nothing outlasts ZooKeeper there
}

// unequals draws that. It has a stream of its own: the others are what they were.
func (p *Plan) unequals() {
	if p.Seed%unequalIn != unequalFrom || p.Calm || p.Regrants {
		return
	}
	r := rand.New(rand.NewPCG(p.Seed, 29))
	least, shortest := minTimeout, p.Timeout
	if p.Watchdog == watchdogRequired {
		least = leastWatched
	}
	longest, u := r.IntN(p.Nodes), &unequal{}
	p.Grace = 0
	for n := range p.Nodes {
		timeout := p.Timeout
		if n != longest {
			timeout = min(p.Timeout, max(least, time.Duration(float64(p.Timeout)/pick(r, 1.0, 1.5, 3, 6)).Round(100*time.Millisecond)))
		}
		grace := pick(r, 0, 0, timeout/4, timeout, 2*p.Timeout)
		u.Timeouts, u.Graces, u.Stops = append(u.Timeouts, timeout), append(u.Graces, grace), append(u.Stops, r.IntN(4) == 0)
		shortest, p.Grace = min(shortest, timeout), max(p.Grace, grace)
	}
	p.Unequal, p.Tick = u, time.Duration(float64(p.Tick)*float64(shortest)/float64(p.Timeout))
	for i := range p.Episodes { // P1: the data is lost while the active node has a lease and does not learn of it
		if r.IntN(2) > 0 {
			continue
		}
		e := &p.Episodes[i]
		begins, cut, loss := p.fault(r, CrashSupervisor), p.fault(r, CutLink), p.fault(r, LoseData)
		begins.At, begins.Active = drawn(r, e.Length), false // what it has seen before is forgotten
		cut.At, cut.For, cut.Active, cut.Server, cut.Way = begins.At+p.Timeout/2+drawn(r, p.Timeout), 2*p.Timeout, true, -1, cutBoth
		loss.At, loss.N = cut.At+drawn(r, p.Timeout/8), 1
		e.Length = max(e.Length, cut.At+cut.For)
		e.Faults = append(e.Faults, begins, cut, loss)
		sortFaults(e.Faults)
	}
}

// lease is a node's.
func (p *Plan) lease(node int) time.Duration {
	if p.Unequal == nil {
		return p.Timeout / 2
	}
	return p.Unequal.Timeouts[node] / 2
}

// grace is a node's grace delay.
func (p *Plan) grace(node int) time.Duration {
	if p.Unequal == nil {
		return p.Grace
	}
	return p.Unequal.Graces[node]
}

// outlasts tells whether a service may outlast ZooKeeper on a node.
func (p *Plan) outlasts(service, node int) bool {
	return p.Failsafe[service] && (p.Unequal == nil || !p.Unequal.Stops[node])
}

func (p *Plan) unequalWords() string {
	if p.Unequal == nil {
		return ""
	}
	return fmt.Sprintf(", session timeouts %v, graces %v, nothing outlasts on %v", p.Unequal.Timeouts, p.Unequal.Graces, p.Unequal.Stops)
}
