package sim

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"
)

// network joins hosts and servers. Each pair has two paths, one a way.
type network struct {
	mu    sync.Mutex // guards all paths and connections
	paths map[pair]*link
	rng   *rand.Rand
	serve func(server int, c net.Conn) bool // false: refused
	base  time.Duration                     // usual latency, at most
	made  int                               // connections
}

type pair struct{ host, server int }

// link is what lies between a host and a server.
type link struct {
	net      *network
	up, down way                // to the server, and from it
	refuses  int                // resets every attempt
	conns    map[*conn]struct{} // the client ends
	dialing  chan struct{}      // closed when something changes
}

// way is one direction: it may hold everything back, and may be slow.
type way struct {
	cut  int // how many faults cut it now
	slow time.Duration
}

func newNetwork(rng *rand.Rand, serve func(int, net.Conn) bool) *network {
	return &network{paths: map[pair]*link{}, rng: rng, serve: serve}
}

func (n *network) link(host, server int) *link {
	p := pair{host, server}
	if n.paths[p] == nil {
		n.paths[p] = &link{net: n, conns: map[*conn]struct{}{}, dialing: make(chan struct{})}
	}
	return n.paths[p]
}

// change alters a link, and lets flow what can flow then.
func (n *network) change(host, server int, f func(l *link)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	l := n.link(host, server)
	f(l)
	close(l.dialing)
	l.dialing = make(chan struct{})
	for _, c := range l.inOrder() {
		c.out.pump()
		c.in.pump()
	}
}

// sever closes all connections of a process that is no more. Without a kernel to tell, the far ends do not learn of it.
func (n *network) sever(g *gate, tell bool) {
	n.mu.Lock()
	var mine []*conn
	for _, l := range n.paths {
		for c := range l.conns {
			if c.owner == g {
				mine = append(mine, c)
			}
		}
	}
	n.mu.Unlock()
	slices.SortFunc(mine, func(a, b *conn) int { return a.number - b.number })
	for _, c := range mine {
		c.shut(tell)
	}
}

// reset breaks all connections of a link, both ends being told.
func (n *network) reset(host, server int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, c := range n.link(host, server).inOrder() {
		c.out.fail(syscall.ECONNRESET)
		c.in.fail(syscall.ECONNRESET)
	}
}

// dial opens a connection for a process behind a gate.
func (n *network) dial(ctx context.Context, host, server int, g *gate) (net.Conn, error) {
	if !g.pass() {
		return nil, errCrashed
	}
	for {
		n.mu.Lock()
		l := n.link(host, server)
		if l.refuses > 0 {
			n.mu.Unlock()
			return nil, syscall.ECONNREFUSED
		}
		wait := l.dialing
		if l.up.cut == 0 && l.down.cut == 0 {
			ours, theirs := l.connect(server)
			ours.owner = g
			n.mu.Unlock()
			if !n.serve(server, theirs) {
				_ = theirs.Close()
				_ = ours.Close()
				return nil, syscall.ECONNREFUSED
			}
			if !g.pass() {
				_ = ours.Close()
				return nil, errCrashed
			}
			return &gated{conn: ours, gate: g}, nil
		}
		n.mu.Unlock()
		select {
		case <-wait:
		case <-ctx.Done():
			if !g.pass() {
				return nil, errCrashed
			}
			return nil, context.Cause(ctx)
		}
	}
}

// serverOf is a server that a host is connected to, or 0.
func (n *network) serverOf(host, servers int) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	for s := range servers {
		if len(n.link(host, s).conns) > 0 {
			return s
		}
	}
	return 0
}

// inOrder is the connections in the order of their making.
func (l *link) inOrder() []*conn {
	return slices.SortedFunc(maps.Keys(l.conns), func(a, b *conn) int { return a.number - b.number })
}

// local is a connection that no fault touches.
func (n *network) local() (ours, theirs *conn) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.link(-1, 0).connect(0)
}

func (l *link) connect(server int) (ours, theirs *conn) {
	a := &stream{net: l.net, way: &l.up}
	b := &stream{net: l.net, way: &l.down}
	a.ready.L, b.ready.L = &l.net.mu, &l.net.mu
	l.net.made++
	ours = &conn{number: l.net.made, link: l, in: b, out: a, addr: addr(fmt.Sprintf("zk%d", server+1))}
	theirs = &conn{link: l, in: a, out: b, addr: "client"}
	l.conns[ours] = struct{}{}
	return ours, theirs
}

// stream is one direction of a connection: bytes that are on their way, and those that have arrived.
type stream struct {
	net      *network
	way      *way
	ready    sync.Cond
	flying   []chunk
	arrived  []byte
	ended    bool  // the sender has closed, and the reader knows
	err      error // reset
	timer    *time.Timer
	limit    time.Time // the reader's deadline
	alarm    *time.Timer
	unread   bool // the reader has closed
	closed   bool // the writer has closed
	alarming bool
}

type chunk struct {
	due  time.Time
	data []byte // nil: the end
}

func (s *stream) push(data []byte) {
	delay := s.way.slow
	if s.net.base > 0 {
		delay += time.Duration(s.net.rng.Int64N(int64(s.net.base)))
	}
	due := time.Now().Add(delay)
	if n := len(s.flying); n > 0 && s.flying[n-1].due.After(due) {
		due = s.flying[n-1].due
	}
	s.flying = append(s.flying, chunk{due, data})
	s.pump()
}

// pump lets arrive what is due.
func (s *stream) pump() {
	if s.way.cut > 0 {
		return
	}
	moved := false
	for len(s.flying) > 0 {
		c := s.flying[0]
		if wait := time.Until(c.due); wait > 0 {
			if s.timer == nil {
				s.timer = time.AfterFunc(wait, s.due)
			} else {
				s.timer.Reset(wait)
			}
			break
		}
		if c.data == nil {
			s.ended = true
		} else {
			s.arrived = append(s.arrived, c.data...)
		}
		s.flying = s.flying[1:]
		moved = true
	}
	if moved {
		s.ready.Broadcast()
	}
}

func (s *stream) due() {
	s.net.mu.Lock()
	defer s.net.mu.Unlock()
	s.pump()
}

func (s *stream) fail(err error) {
	if s.err == nil {
		s.err = err
	}
	s.ready.Broadcast()
}

// addr is a network address that is only a name.
type addr string

func (addr) Network() string  { return "sim" }
func (a addr) String() string { return string(a) + ":2181" }
