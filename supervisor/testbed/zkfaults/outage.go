package zkfaults

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"understudy/election/jute"
)

// Down does what the end of the server's process would: connections break, new ones are refused, and no session ends
// meanwhile. Tree and sessions are kept, as on disk.
func (s *Server) Down() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = true
	if s.member != nil {
		s.member.leave(true)
	}
	s.dropAll()
}

// Up ends Down. Every session has the timeout again that it was opened with, as after the start of a real server: that one is in
// the log, and the one that a reconnect negotiated is not.
func (s *Server) Up() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = false
	if m := s.member; m != nil {
		if m.role == down && m.part != Removed {
			m.role = looking
			m.e.lookSoon()
		}
		return
	}
	s.db.sessions.revive(func(id int64) time.Duration { return s.db.created[id] })
	s.alarms.armExpiry()
}

// ElectLeader looks to the clients like a new leader's election: connections break, sessions have
// their full timeout again, and zxids continue in the next epoch.
func (s *Server) ElectLeader() {
	s.Down()
	if s.member == nil {
		s.mu.Lock()
		s.db.newEpoch()
		s.mu.Unlock()
	}
	s.Up()
}

// Wipe is the loss of all data: the tree is empty, no session is known, zxids start again, connections break. An
// ensemble has a Wipe of its own.
func (s *Server) Wipe() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dropAll()
	next := s.db.sessions.nextID
	s.db = newDatabase(s.cfg.TickTime)
	s.db.sessions.nextID = max(next, s.db.sessions.nextID)
}

// ForgetSessions has the server know no session that reconnects, and hand out another one, as ClickHouse Keeper did; or no longer.
func (s *Server) ForgetSessions(yes bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forgets = yes
}

// Requests is how many requests of each kind have arrived. Handshakes count as createSession.
func (s *Server) Requests() map[jute.Op]int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.counts)
}

// Sessions is the ids of the sessions that live, in their order.
func (s *Server) Sessions() []int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.db.sessions.byID))
}

// Zxid is that of the last change.
func (s *Server) Zxid() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.db.Zxid
}

// Expire ends a session now, as if its timeout had passed. False means that there is no such session.
func (s *Server) Expire(id int64) bool {
	s.mu.Lock()
	_, ok := s.db.sessions.byID[id]
	if ok {
		s.endSession(id)
	}
	s.mu.Unlock()
	if ok {
		s.log.Info("session expired on demand", "session", fmt.Sprintf("%#x", id))
	}
	return ok
}

// SetBounds has the server grant other session timeouts from now on, as after a restart with another config: to new sessions, and to
// those that come back.
func (s *Server) SetBounds(shortest, longest time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cfg.MinTimeout, s.cfg.MaxTimeout = shortest, max(shortest, longest)
}
