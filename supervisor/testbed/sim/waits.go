package sim

import (
	"encoding/json"
	"time"

	"understudy/election"
)

// What nodes wait for by time alone: a look at the leases of the other nodes at the end of each such wait. No two programs have to overlap
// for a promise to be broken.

// leaseSeen is a node's lease, as that node computes it.
type leaseSeen struct {
	session     int64     // 0: it knows of none that stands
	sent, until time.Time // when the heartbeat was sent that it rests on, and its end
}

// leased notes a heartbeat that was answered to a node.
func (si *sight) leased(n *node, session int64, sent time.Time) {
	length := n.w.plan.lease(n.index)
	seen := leaseSeen{session, sent, sent.Add(length - length/1000)} // its clock may be fast
	si.leases[n.name], si.newestOf[session] = seen, seen
}

// leaseStands tells whether a session's lease is not over yet, by its node's clock, which may be slow. The programs take a moment to die.
func (si *sight) leaseStands(session int64) bool {
	seen := si.newestOf[session]
	return time.Now().Before(seen.until.Add(seen.until.Sub(seen.sent) / 20))
}

// greeted notes the session that a server gave a node; 0: it had none any more.
func (si *sight) greeted(node string, session int64) {
	if si.leases[node].session != session {
		delete(si.leases, node)
	}
}

// waited is told that a node has waited until a lease had ended that it cannot know: of any session that was lost with ZooKeeper's data, or
// of the one that a breadcrumb names.
func (c *checker) waited(n *node, what string, of func(seen leaseSeen) bool) {
	stands := func(n *node) bool { return c.sessions.of[n.name] == c.sight.leases[n.name].session } // it may in an older copy of the data, too
	if !stands(n) {
		return // it can claim nothing, and waits again
	}
	for _, other := range c.w.nodes {
		seen := c.sight.leases[other.name]
		if other == n || seen.session == 0 || stands(other) || !of(seen) || !time.Now().Before(seen.until) || !other.holds(seen.session) {
			continue
		}
		c.broken("P1", "%s has ended its %s, and the lease of %s, of session %s, lasts for another %v", n.name, what, other.name,
			election.SessionName(seen.session), time.Until(seen.until))
	}
}

// quarantined is told that a node has waited because data was lost. Data that was set back meanwhile is noticed before it claims, and it waits again.
func (c *checker) quarantined(n *node, service string) {
	if c.waits[n.name+"/"+service].Before(c.sessions.since) {
		return
	}
	c.waited(n, "wait after a loss of data", c.sessions.gone)
}

// delayed is told that a node takes a delay for a proof.
func (c *checker) delayed(n *node, service string) {
	named := c.services[service].crumb.session
	c.waited(n, "grace delay", func(seen leaseSeen) bool {
		return election.SessionName(seen.session) == named && (c.sessions.gone(seen) || c.effects.expired[seen.session])
	})
}

// holds tells whether a session's lease is one of a supervisor that runs, and has not ended it.
func (n *node) holds(session int64) bool {
	if n.inc == nil || n.inc.guard == nil {
		return false
	}
	for _, l := range n.inc.guard.pair.State.Leases() {
		var t election.Ticket
		if l.Cause == nil && json.Unmarshal(l.Ticket, &t) == nil && t.Session == session {
			return true
		}
	}
	return false
}
