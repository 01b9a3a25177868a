package election

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// Self is our own znode, nodes/<node>. Each heartbeat writes it.
type Self struct {
	mu   sync.Mutex // guards the fields below
	node Node
	slow time.Duration // a write takes so long; 0: it is no matter
	ats  map[string]func() (At, bool)
}

func newSelf(cfg *Config) Self {
	node := cfg.Node
	node.LeaseMs = cfg.Lease.Milliseconds()
	return Self{node: node}
}

// Say changes the data that the next heartbeat writes.
func (s *Self) Say(change func(*Node)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.node)
}

// saySlow has it warn of writes that take so long.
func (s *Self) saySlow(took time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.slow = took.Round(100 * time.Millisecond)
}

// SayAt has each heartbeat tell how far the copy of a service is, until stop is called.
func (s *Self) SayAt(service string, at func() (At, bool)) (stop func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ats == nil {
		s.ats = map[string]func() (At, bool){}
	}
	s.ats[service] = at
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.ats, service)
	}
}

func (s *Self) data() []byte {
	s.mu.Lock()
	node, ats := s.node, maps.Clone(s.ats)
	if s.slow > 0 {
		node.Warnings = slices.Concat([]string{slowness(s.slow)}, node.Warnings)
	}
	s.mu.Unlock()
	node.Sent = time.Now().UTC()
	for service, at := range ats {
		if said, ok := at(); ok {
			if node.Copies == nil {
				node.Copies = map[string]At{}
			}
			node.Copies[service] = said
		}
	}
	return encode(node)
}

// locks are the locks that may be ours, by service.
type locks struct {
	mu   sync.Mutex // guards held
	held map[string]Release
}

func (l *locks) add(p Paths) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held == nil {
		l.held = map[string]Release{}
	}
	l.held[p.Service] = p.Release()
}

func (l *locks) drop(service string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.held, service)
}

func (l *locks) all() map[string]Release {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.held)
}
