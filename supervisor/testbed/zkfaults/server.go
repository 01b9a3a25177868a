package zkfaults

import (
	"fmt"
	"maps"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"understudy/election/jute"
	"understudy/election/zkmem"
)

// Config of a server. The zero value works.
type Config struct {
	TickTime   time.Duration // 2 s when zero; sessions end on a tick
	MinTimeout time.Duration // of a session; 2 ticks when zero
	MaxTimeout time.Duration // of a session; 20 ticks when zero
	MaxFrame   int           // the longest request; jute.MaxFrame when zero
	Logger     hclog.Logger
	Observe    func(Commit) // told each transaction in turn; it must not wait, and not call the server
}

// Server is a ZooKeeper server. Its methods may be called at the same time.
type Server struct {
	cfg    Config
	log    hclog.Logger
	member *member // of an ensemble; nil for a server that stands alone

	mu *sync.Mutex // guards what follows; the servers of an ensemble share it
	replica
	*faults
	clients clients
	alarms  alarms
	counts  map[jute.Op]int64
	down    bool
	closed  bool
	forgets bool
}

// New makes a server with an empty tree. Close must be called at the end.
func New(cfg Config) *Server { return newServer(cfg, &sync.Mutex{}) }

func newServer(cfg Config, mu *sync.Mutex) *Server {
	if cfg.TickTime <= 0 {
		cfg.TickTime = 2 * time.Second
	}
	if cfg.MinTimeout <= 0 {
		cfg.MinTimeout = 2 * cfg.TickTime
	}
	if cfg.MaxTimeout <= 0 {
		cfg.MaxTimeout = max(20*cfg.TickTime, cfg.MinTimeout)
	}
	if cfg.MaxFrame <= 0 {
		cfg.MaxFrame = jute.MaxFrame
	}
	if cfg.Logger == nil {
		cfg.Logger = hclog.NewNullLogger()
	}
	s := &Server{
		cfg:     cfg,
		log:     cfg.Logger.Named("zkfaults"),
		mu:      mu,
		replica: replica{db: newDatabase(cfg.TickTime), watches: zkmem.NewWatches(), observe: cfg.Observe},
		clients: clients{open: map[*conn]struct{}{}, listeners: map[net.Listener]struct{}{}},
		counts:  map[jute.Op]int64{},
	}
	s.faults, s.alarms.s = &faults{mu: mu, clients: &s.clients}, s
	return s
}

// ListenAndServe serves TCP connections on addr until Close.
func (s *Server) ListenAndServe(addr string) error {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return fmt.Errorf("zkfaults: %w", err)
	}
	return s.Serve(l)
}

// Serve serves the connections of l, which it closes, until l fails or the server is closed: then the error is
// zkmem.ErrClosed. It returns when the last of its connections has ended.
func (s *Server) Serve(l net.Listener) error {
	defer l.Close()
	s.mu.Lock()
	closed := s.closed
	if !closed {
		s.clients.listeners[l] = struct{}{}
	}
	s.mu.Unlock()
	if closed {
		return zkmem.ErrClosed
	}
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.clients.listeners, l)
	}()
	var wait sync.WaitGroup
	defer wait.Wait()
	for {
		nc, err := l.Accept()
		if err != nil {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.closed {
				return zkmem.ErrClosed
			}
			return fmt.Errorf("zkfaults: %w", err)
		}
		wait.Go(func() { s.ServeConn(nc) })
	}
}

// ServeConn serves one client and returns when both sides have done with the connection, which it closes.
func (s *Server) ServeConn(nc net.Conn) {
	c := newConn(nc)
	if !s.admit(c) {
		_ = nc.Close()
		return
	}
	defer s.clients.served.Done()
	s.log.Debug("connection opened", "addr", c.addr())
	c.carry(s.cfg.MaxFrame, func(frame []byte) { exchange{s, c}.answer(frame) }, func() { s.peerLeft(c) })
	s.mu.Lock()
	s.clients.remove(c)
	session := c.Session
	s.mu.Unlock()
	s.log.Debug("connection closed", "addr", c.addr(), "session", fmt.Sprintf("%#x", session))
}

func (s *Server) admit(c *conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.down || !s.member.serves() {
		return false
	}
	s.clients.add(c)
	s.faults.shape(c)
	return true
}

// peerLeft is called when no more requests come. Who hung up first makes the difference: a client that left gets no
// more answers, as from the real server.
func (s *Server) peerLeft(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watches.Drop(c.Client)
	if !c.over {
		c.abort()
	}
}

// Close ends every connection and waits until they are gone. The sessions end with the server.
func (s *Server) Close() error {
	s.mu.Lock()
	s.closed = true
	s.member.end()
	s.dropAll()
	listeners := maps.Clone(s.clients.listeners)
	s.mu.Unlock()
	for l := range listeners {
		_ = l.Close()
	}
	s.clients.served.Wait()
	return nil
}

// dropAll ends connections and timers, as the end of the process would.
func (s *Server) dropAll() {
	for _, c := range s.clients.inOrder() {
		c.abort()
	}
	s.watches = zkmem.NewWatches()
	s.alarms.stop()
}

// endSession ends a session with everything that hangs on it.
func (s *Server) endSession(id int64) {
	s.replica.close(id, true)
	if c := s.clients.of(id); c != nil {
		c.HangUp()
		s.watches.Drop(c.Client)
	}
}

// figures are what the server's words tell.
func (s *Server) figures() zkmem.Figures {
	f := zkmem.Figures{Port: "-1", Tick: s.cfg.TickTime, Least: s.cfg.MinTimeout, Longest: s.cfg.MaxTimeout, Connections: len(s.clients.open)}
	for l := range s.clients.listeners {
		_, f.Port, _ = net.SplitHostPort(l.Addr().String())
	}
	f.Received, f.Sent = s.clients.traffic()
	return f
}
