package zkfaults

import "slices"

// Part is what a server is in its ensemble.
type Part int

// The parts.
const (
	Voter    Part = iota
	Observer      // it follows and serves, and no majority counts it
	Removed       // its operator has stopped it
)

// voters lists the servers that vote, as a reconfiguration would leave it.
func (e *Ensemble) voters(after map[*member]Part) (voters []*member) {
	for _, m := range e.members {
		part, changed := after[m]
		if !changed {
			part = m.part
		}
		if part == Voter {
			voters = append(voters, m)
		}
	}
	return voters
}

// Reconfigure gives a server another part. It reports false if the ensemble refuses: there is no leader, a change is under way, fewer than
// two voters would be left, or no majority of them has what holds. The real one carries the order through its log, and has a majority of
// the previous voters and one of the next agree to it; both have it at once here.
func (e *Ensemble) Reconfigure(server int, part Part) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	m := e.members[server]
	i := slices.IndexFunc(e.members, func(l *member) bool { return l.role == leading && l.lead.hasQuorum() })
	if i < 0 || m.part == part || e.closed {
		return false
	}
	l := e.members[i]
	next := e.voters(map[*member]Part{m: part})
	need := len(next)/2 + 1
	next = slices.DeleteFunc(next, func(m *member) bool { return m != l && l.lead.acks[m] < l.lead.last })
	if need < 2 || l.lead.last > l.log.done || l.lead.heard(next) < need {
		return false
	}
	was := m.part
	m.part = part
	switch {
	case part == Removed:
		m.leave(true)
	case was == Removed && !m.s.down:
		m.role = looking
		e.lookSoon()
	case m == l: // it is none that may lead any more
		m.leave(false)
	}
	return true
}

// Part is what a server is now.
func (e *Ensemble) Part(server int) Part {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.members[server].part
}

// Connected reports how many clients a server has.
func (e *Ensemble) Connected(server int) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.members[server].s.clients.open)
}
