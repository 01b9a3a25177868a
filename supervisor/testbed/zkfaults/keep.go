package zkfaults

// Keep has a session go on without a sign of life from its client, as if somebody else had attached to it and sent pings, until
// the function returned is called. It does end when it is closed.
func (s *Server) Keep(id int64) (end func()) {
	set := func(kept bool) {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, of := range s.all() {
			delete(of.db.sessions.kept, id)
			if kept {
				of.db.sessions.kept[id] = true
			} else if timeout, ok := of.db.timeouts[id]; ok {
				of.db.sessions.touch(id, timeout)
				of.alarms.armExpiry()
			}
		}
	}
	set(true)
	return func() { set(false) }
}

// all is the servers that keep the same data.
func (s *Server) all() []*Server {
	if s.member == nil {
		return []*Server{s}
	}
	var all []*Server
	for _, m := range s.member.e.members {
		all = append(all, m.s)
	}
	return all
}
