package service

import "sync"

// Spread keeps services with a common word on different nodes while it can: a node that has one of them leaves the free lock of another to
// others for a moment. Two that become free at the same moment may meet.
type Spread struct {
	mu   sync.Mutex // guards the field below
	here map[string]string
}

// NewSpread is of a node that runs nothing.
func NewSpread() *Spread { return &Spread{here: map[string]string{}} }

// crowded reports whether another service with this word may run here.
func (s *Spread) crowded(service, word string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, one := range s.here {
		if name != service && one == word {
			return true
		}
	}
	return false
}

// engage notes that the service may run here from now on.
func (s *Spread) engage(service, word string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if word != "" {
		s.here[service] = word
	}
}

func (s *Spread) disengage(service string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.here, service)
}
