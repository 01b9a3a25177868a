package zkmem

import "time"

// SetBounds has the server grant other session timeouts from now on, as after a restart with another config: to new sessions, and to
// those that come back.
func (s *Server) SetBounds(shortest, longest time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cfg.MinTimeout, s.cfg.MaxTimeout = shortest, max(shortest, longest)
}
