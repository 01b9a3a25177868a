package service

import (
	"sync"
	"time"
)

// Spread keeps services with a common word on different nodes while it can: a node that has one of them leaves the free lock of another to
// others for a moment.
type Spread struct {
	mu   sync.Mutex // guards the field below
	here map[string]placed
}

// placed is a service that may run on this node.
type placed struct {
	word string
	over time.Time // zero: as long as it may be started here
}

// claiming is for how long a service counts that is about to claim its lock.
const claiming = 2 * time.Second

// NewSpread is of a node that runs nothing.
func NewSpread() *Spread { return &Spread{here: map[string]placed{}} }

// crowded reports whether another service with this word may run here. If none may, this one counts from now on, as others may be free, too.
func (s *Spread) crowded(service, word string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, p := range s.here {
		if name != service && p.word == word && (p.over.IsZero() || time.Now().Before(p.over)) {
			return true
		}
	}
	if p, there := s.here[service]; !there || !p.over.IsZero() {
		s.here[service] = placed{word, time.Now().Add(claiming)}
	}
	return false
}

// engage notes that the service may run here from now on.
func (s *Spread) engage(service, word string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if word != "" {
		s.here[service] = placed{word: word}
	}
}

func (s *Spread) disengage(service string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.here, service)
}
