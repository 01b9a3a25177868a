package election

import (
	"maps"
	"sync"
)

// Self is our own znode, nodes/<node>. Each heartbeat writes it.
type Self struct {
	mu   sync.Mutex // guards node
	node Node
}

// Say changes the data that the next heartbeat writes.
func (s *Self) Say(change func(*Node)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.node)
}

func (s *Self) data() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return encode(s.node)
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
