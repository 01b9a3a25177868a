package zkfaults

import "time"

// unheard waits for the moment at which a server is best cut off from the others.
type unheard struct {
	session int64
	early   time.Duration
	spring  func(server int, heal func())
}

// IsolateUnheard cuts a follower off from the other servers just when it has answered a write of a session and has not told
// its leader of that sign of life, so that the leader is going to end the session early: by at least so much sooner than a
// session timeout after the write. spring is told then, and heal ends it. With cancel nothing of that happens any more.
func (e *Ensemble) IsolateUnheard(session int64, early time.Duration, spring func(server int, heal func())) (cancel func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	u := &unheard{session, early, spring}
	e.unheard = u
	return func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.unheard == u {
			e.unheard = nil
		}
	}
}

// answered is called when a server has answered a write.
func (m *member) answered(session int64, came time.Time) {
	u := m.e.unheard
	if u == nil || u.session != session || m.role != following {
		return
	}
	db := m.leader.s.db
	s := db.sessions.byID[session]
	if s == nil || came.Add(db.timeouts[session]-u.early).Before(db.sessions.start.Add(s.expires)) {
		return
	}
	m.e.unheard = nil
	m.isolate(1)
	time.AfterFunc(0, func() { // without the lock
		u.spring(m.index, func() {
			m.e.mu.Lock()
			defer m.e.mu.Unlock()
			m.isolate(-1)
		})
	})
}

// isolate cuts a server off from all others, both ways, or heals that. The lock is held.
func (m *member) isolate(sign int) {
	for n := range m.e.members {
		if n == m.index {
			continue
		}
		for _, w := range []*wire{m.e.wire(m.index, n), m.e.wire(n, m.index)} {
			w.cut += sign
			w.pump()
		}
	}
}
