package sim

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"understudy/election"
)

// restBegins notes that all is well from now on.
func (c *checker) restBegins() {
	for _, v := range c.services {
		v.claims = 0
	}
}

// rested looks, at the end of a time without faults, whether the services have come to rest where they should be.
func (c *checker) rested(after time.Duration) {
	p := c.w.plan
	for _, name := range p.services() {
		v, s := c.services[name], c.w.operator.settings[name]
		if v.claims > p.Nodes+2 {
			c.broken("failback", "%s has moved %d times though all was well", name, v.claims)
		}
		c.apart(v)
		c.ends(v)
		for other := range v.living {
			if other.program == mainProgram && after >= c.w.patience() && s.outdates(other) {
				c.broken("reload", "%v is of edition %s, though all has been well for %v since there is edition %d", other, other.argv[1], after, s.edition)
			}
		}
		if after < c.w.patience() || time.Since(v.moving) < p.stopping()+p.longest() { // it is on its way to where it had failed, and is trusted with it again
			continue
		}
		for _, n := range c.w.nodes {
			if role := v.members[n.name].Role; role != "active" && role != "standby" && n.index != p.Ineligible && !s.gone[n.index] {
				c.broken("standby", "%s does not stand by for %s, though all has been well for %v: %q", n.name, name, after, role)
			}
		}
		if !p.Failback {
			continue
		}
		for _, n := range c.w.nodes {
			if n.index == p.Ineligible {
				continue
			}
			if v.members[n.name].Demoted != nil { // what becomes of that, drills show
				continue
			}
			for other := range v.living {
				if other.main && s.priority[c.w.indexOf(other.tree.node)] < s.priority[n.index] {
					c.broken("failback", "%v runs, though all has been well for %v and %s is preferred", other, after, n.name)
				}
			}
		}
	}
}

// indexOf is the number of the node with that name.
func (w *world) indexOf(name string) int {
	for _, n := range w.nodes {
		if n.name == name {
			return n.index
		}
	}
	return -1
}

// woke reports whether the node's supervisor woke from a sleep between two moments.
func (n *node) woke(after, until time.Time) bool {
	return slices.ContainsFunc(n.thaws, func(at time.Time) bool { return at.After(after) && !at.After(until) })
}

// hungBetween reports whether a goroutine that decides hung between two moments.
func (n *node) hungBetween(after, until time.Time) bool {
	return slices.ContainsFunc(n.hung, func(at time.Time) bool { return !at.Before(after) && !at.After(until) })
}

// apart looks whether the history has activations apart from each other, as their programs were. A node that slept proves a death late, whatever it
// ended its programs for, and may find them dead before it finds its lease over. Who had proved it before may have slept as well, before its own
// activation had an entry: then what its guardian noted of its own end took the place of what the previous one's had noted. Or it gave the lock
// to a newer copy at once, and has no entry.
func (c *checker) apart(v *serviceView) {
	var previous election.Activation
	for _, a := range slices.SortedFunc(maps.Values(v.history), func(a, b election.Activation) int { return cmp.Compare(a.Token, b.Token) }) {
		slept := slices.Contains([]election.Reason{election.LeaseEnding, election.LockLost, election.SessionExpired, election.ChildFailed}, previous.Reason) ||
			a.Started != nil && previous.End != nil && c.w.nodes[c.w.indexOf(previous.Node)].woke(*a.Started, *previous.End)
		exact := previous.EndMin != nil && previous.EndMax != nil && previous.EndMin.Equal(*previous.EndMax)
		unproved := slept && !exact && !a.Fenced.Fenced()
		if end := previous.End; !unproved && v.next[previous.Token] == a.Token && a.Started != nil && end != nil && end.After(*a.Started) && !a.Fenced.Confirmed() && !v.struck[previous.Token] {
			c.broken("history", "%d of %s ended %v after %d had started: %s", previous.Token, previous.Node, end.Sub(*a.Started), a.Token, previous.Reason)
		}
		previous = a
	}
}

// endSlack is how much later than a death its proof may be, and how exact bounds are.
const endSlack = 300 * time.Millisecond

// death is when a process ran last: between its kill, after which it runs no instruction, and its end, which the kernel may put off.
type death struct{ after, by time.Time }

// or is the later one of two deaths, the second that of a process that has just ended.
func (d death) or(p *proc) death {
	now := time.Now()
	after := now
	if p.killed {
		after = p.struck
	}
	if after.Before(d.after) {
		after = d.after
	}
	return death{after, now}
}

// ends looks whether the last process of each activation ended when the history says. What an operator confirmed or deleted by hand is theirs
// to know; a copy lives on as a follower; a node that slept may find its programs dead late; and a supervisor of which only the goroutine hangs
// that decides sends heartbeats beside a dead program.
func (c *checker) ends(v *serviceView) {
	p := c.w.plan
	if p.copied() || v.setBack {
		return
	}
	longer := p.Regrants || len(c.sessions.meddled) > 0 // a session may outlive the timeout that its node was granted
	past := slices.SortedFunc(maps.Values(v.history), func(a, b election.Activation) int { return cmp.Compare(a.Token, b.Token) })
	for i, a := range past {
		died, ran := v.died[a.Token]
		if a.End == nil || !ran || v.struck[a.Token] || i+1 < len(past) && past[i+1].Fenced.Confirmed() {
			continue
		}
		least, most := a.EndMin, a.EndMax
		if least == nil && most == nil {
			if i+1 < len(past) && a.End.Equal(past[i+1].Start) {
				continue // nobody knows
			}
			least, most = a.End, a.End
		}
		n := c.w.nodes[c.w.indexOf(a.Node)]
		if undid := v.undid[a.Token]; least != most && undid.After(died.by) { // others saw its node alive, and not what it undid
			if died.by = undid; v.left[a.Token] { // nor how long it went on
				least = nil
			}
		}
		late := least != nil && !longer && died.by.Before(least.Add(-endSlack)) && !n.woke(died.by, *least) && !n.hungBetween(a.Start, *least)
		if late || most != nil && died.after.After(most.Add(endSlack)) {
			c.broken("history", "the last process of %d on %s ended at %v, and the history says %v to %v: %s", a.Token, a.Node, died.by, least, most, a.Reason)
		}
	}
}
