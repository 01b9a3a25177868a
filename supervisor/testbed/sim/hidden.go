package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"understudy/supervisor/config"
)

// In one of so many seeds with replicated services the followers look at the primary from outside, and at times do not reach it, though all
// is well with it. When all has been well for long they do not reach it either, in a drill.
const (
	hiddenIn   = 3
	hiddenFrom = 2

	seenCommand = "seen"
)

// hides adds such faults to the episodes that are drawn. It has a stream of its own: the others are what they were.
func (p *Plan) hides() {
	if !p.Replicated || p.Calm || p.Seed%hiddenIn != hiddenFrom {
		return
	}
	r := rand.New(rand.NewPCG(p.Seed, 23))
	p.Seen = pick(r, config.QuorumMajority, config.QuorumMajority, config.QuorumAll, config.QuorumAny)
	for i := range p.Episodes {
		e := &p.Episodes[i]
		for range r.IntN(3) {
			e.Faults = append(e.Faults, Fault{Kind: HidePrimary, Node: r.IntN(p.Nodes), Active: true, N: r.IntN(1 << 16), At: drawn(r, e.Length), For: drawn(r, 4*p.Timeout)})
		}
		sortFaults(e.Faults)
	}
}

// seenBy is how followers look at a primary.
func (p *Plan) seenBy() *config.SeenBy {
	if p.Seen == "" {
		return nil
	}
	return &config.SeenBy{Exec: []string{seenCommand}, Interval: p.Timeout / 2, Timeout: 4 * helperLength, Failures: 2, Quorum: p.Seen}
}

// hiding is the primaries that others do not reach. World.mu guards it.
type hiding struct {
	from map[string][]string // by service and primary, as in hidden: who does not reach it
	cut  map[string]bool     // services whose followers get no data
}

func newHiding() hiding { return hiding{from: map[string][]string{}, cut: map[string]bool{}} }

func hidden(service, primary string) string { return service + " on " + primary }

// hide has so many others not reach a primary, until end is called. World.mu is held, as it is then.
func (cv *copiesView) hide(service string, n *node, from int) (end func()) {
	key := hidden(service, n.name)
	for k := range min(from, len(cv.nodes)-1) {
		cv.hiding.from[key] = append(cv.hiding.from[key], cv.nodes[(n.index+1+k)%len(cv.nodes)].name)
	}
	cv.say("%s is not reachable for %v", key, cv.hiding.from[key])
	return func() { delete(cv.hiding.from, key) }
}

// reaches reports whether a node reaches the copy on another one, as a primary.
func (cv *copiesView) reaches(service, from, to string) bool {
	p := cv.on(service, to)
	return p != nil && p.copy.primary && !slices.Contains(cv.hiding.from[hidden(service, to)], from)
}

// hides has no other node reach a primary, while all is well with it: it stays as long as their copies lack data, and goes to one of them
// when none does any more.
func (dr *drill) hides() {
	r := dr.stream(fmt.Sprint("hidden ", time.Since(dr.began)))
	name := pick(r, dr.plan.services()...)
	v, cv := dr.check.services[name], &dr.copies
	dr.mu.Lock()
	node, token := cv.settled(name), v.lock.czxid
	if node == "" || v.paused {
		dr.mu.Unlock()
		return
	}
	cv.hiding.cut[name] = true
	dr.mu.Unlock()
	looks := 6 * dr.plan.Timeout // until positions are asked, and it was looked often enough
	ended := func() bool { return v.lock.czxid != token || !dr.check.running(name) }
	if dr.soon(looks, ended) {
		dr.violated("seen", "the primary of %s on %s ended, since its followers got no data", name, node)
	}
	dr.mu.Lock()
	end := cv.hide(name, dr.nodes[dr.indexOf(node)], dr.plan.Nodes)
	dr.mu.Unlock()
	if dr.soon(looks+20*time.Second, ended) {
		dr.violated("seen", "the primary of %s on %s ended, though no other copy was fit", name, node)
	}
	dr.mu.Lock()
	cv.hiding.cut[name] = false
	dr.mu.Unlock()
	moved := func() bool {
		return v.paused || v.lock.there && v.lock.czxid != token && dr.check.running(name) && !dr.check.runsOn(name, node)
	}
	limit := dr.patience() + 10*dr.plan.Timeout
	if !dr.soon(limit, moved) {
		dr.violated("seen", "others did not reach the primary of %s on %s, were fit, and none took over within %v", name, node, limit)
	}
	told := func() bool { return v.paused || strings.HasPrefix(v.ends[token], "not reachable; for ") }
	if !dr.soon(10*time.Second, told) {
		dr.violated("seen", "the history has for the end of %s on %s: %q", name, node, v.ends[token])
	}
	dr.mu.Lock()
	end()
	dr.mu.Unlock()
}

// settled is the node of a primary that all other copies follow, one of them on a node that may take over; "": there is none. World.mu is
// held.
func (cv *copiesView) settled(service string) (node string) {
	for _, n := range cv.nodes {
		if p := cv.on(service, n.name); p != nil && p.copy.primary {
			node = n.name
		}
	}
	able := false
	for _, n := range cv.nodes {
		switch p := cv.on(service, n.name); {
		case n.name == node:
		case p == nil || p.copy.follows != node || time.Now().Before(p.copy.synced):
			return ""
		case n.index != cv.plan.Ineligible:
			able = true
		}
	}
	if !able {
		return ""
	}
	return node
}
