package zkmem

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"understudy/election/jute"
)

// containerCheck is how often the real server looks for containers that have become empty.
const containerCheck = time.Minute

// ErrClosed is what Serve returns after Close.
var ErrClosed = errors.New("zkmem: server closed")

// Config of a server. The zero value works.
type Config struct {
	TickTime   time.Duration // 2 s when zero; sessions end on a tick
	MinTimeout time.Duration // of a session; 2 ticks when zero
	MaxTimeout time.Duration // of a session; 20 ticks when zero
	MaxFrame   int           // the longest request; jute.MaxFrame when zero
	Logger     hclog.Logger
	Granted    func(client net.Conn, session int64, timeout time.Duration) // told what a session has that comes back; as Observe
	Observe    func(Commit)                                                // told each transaction in turn; it must not wait, and not call the server
}

// Server is a ZooKeeper server. Its methods may be called at the same time.
type Server struct {
	cfg   Config
	log   hclog.Logger
	since time.Time
	conns sync.WaitGroup // every ServeConn

	member *member // of an ensemble; nil for a server that stands alone

	mu        *sync.Mutex // guards what follows; the servers of an ensemble share it
	db        *database
	watches   watches
	open      map[*conn]struct{}
	opened    int64
	listeners map[net.Listener]struct{}
	faults    faults
	counts    map[jute.Op]int64
	expiry    *time.Timer
	looksAt   time.Time   // when expiry rings
	cleaning  *time.Timer // of containers
	down      bool
	closed    bool

	received, sent int64 // of connections that are no more
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
	return &Server{
		cfg:       cfg,
		log:       cfg.Logger.Named("zkmem"),
		since:     time.Now(),
		mu:        mu,
		db:        newDatabase(cfg.TickTime),
		watches:   newWatches(),
		open:      map[*conn]struct{}{},
		listeners: map[net.Listener]struct{}{},
		counts:    map[jute.Op]int64{},
	}
}

// ListenAndServe serves TCP connections on addr until Close.
func (s *Server) ListenAndServe(addr string) error {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return fmt.Errorf("zkmem: %w", err)
	}
	return s.Serve(l)
}

// Serve serves the connections of l, which it closes, until l fails or the server is closed: then the error is
// ErrClosed. It returns when the last of its connections has ended.
func (s *Server) Serve(l net.Listener) error {
	defer l.Close()
	if !s.adopt(l) {
		return ErrClosed
	}
	defer s.disown(l)
	var wait sync.WaitGroup
	defer wait.Wait()
	for {
		nc, err := l.Accept()
		if err != nil {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.closed {
				return ErrClosed
			}
			return fmt.Errorf("zkmem: %w", err)
		}
		wait.Go(func() { s.ServeConn(nc) })
	}
}

func (s *Server) adopt(l net.Listener) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.listeners[l] = struct{}{}
	}
	return !s.closed
}

func (s *Server) disown(l net.Listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.listeners, l)
}

// ServeConn serves one client and returns when both sides have done with the connection, which it closes.
func (s *Server) ServeConn(nc net.Conn) {
	c := newConn(nc)
	if !s.admit(c) {
		_ = nc.Close()
		return
	}
	defer s.conns.Done()
	s.log.Debug("connection opened", "addr", c.addr())
	c.carry(s.cfg.MaxFrame, func(frame []byte) { s.answer(c, frame) }, func() { s.peerLeft(c) })
	s.mu.Lock()
	delete(s.open, c)
	s.received += c.received.Load()
	s.sent += c.sent.Load()
	session := c.session
	s.mu.Unlock()
	s.log.Debug("connection closed", "addr", c.addr(), "session", fmt.Sprintf("%#x", session))
}

func (s *Server) admit(c *conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.down || !s.member.serves() {
		return false
	}
	s.conns.Add(1)
	s.opened++
	c.number = s.opened
	s.open[c] = struct{}{}
	s.faults.shape(c)
	return true
}

// peerLeft is called when no more requests come. Who hung up first makes the difference: a client that left gets no
// more answers, as from the real server.
func (s *Server) peerLeft(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watches.dropAll(c)
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
	listeners := maps.Clone(s.listeners)
	s.mu.Unlock()
	for l := range listeners {
		_ = l.Close()
	}
	s.conns.Wait()
	return nil
}

// dropAll does what the end of a server process does to its connections and timers.
func (s *Server) dropAll() {
	for _, c := range s.inOrder() {
		c.abort()
	}
	s.watches = newWatches()
	for _, timer := range []*time.Timer{s.expiry, s.cleaning} {
		if timer != nil {
			timer.Stop()
		}
	}
	s.expiry, s.cleaning = nil, nil
}

// inOrder is the connections in the order of their opening.
func (s *Server) inOrder() []*conn {
	return slices.SortedFunc(maps.Keys(s.open), func(a, b *conn) int { return int(a.number - b.number) })
}

// connOf is the connection that a session uses now, if any.
func (s *Server) connOf(session int64) *conn {
	for c := range s.open {
		if c.session == session && c.shaken && !c.over {
			return c
		}
	}
	return nil
}

// endSession ends a session with everything that hangs on it.
func (s *Server) endSession(id int64) {
	changes := s.db.closeSession(id)
	s.observed(Commit{Zxid: s.db.zxid, Ended: id, Expired: true}, changes)
	s.watches.fire(changes)
	if c := s.connOf(id); c != nil {
		c.hangUp()
		s.watches.dropAll(c)
	}
}

// armExpiry makes sure that somebody looks when the next session may end. An alarm that rings earlier is left.
func (s *Server) armExpiry() {
	wait, ok := s.db.sessions.next()
	at := time.Now().Add(wait)
	if s.expiry != nil && ok && !at.Before(s.looksAt) {
		return
	}
	if s.expiry != nil {
		s.expiry.Stop()
		s.expiry = nil
	}
	if ok && !s.closed && !s.down && s.member.leads() {
		s.expiry, s.looksAt = time.AfterFunc(wait, s.expire), at
	}
}

func (s *Server) expire() {
	for _, id := range s.expireDue() {
		s.log.Info("session expired", "session", fmt.Sprintf("%#x", id))
	}
}

func (s *Server) expireDue() []int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expiry = nil
	if s.closed || s.down || !s.member.leads() {
		return nil
	}
	due := s.db.sessions.due()
	for _, id := range due {
		if s.member != nil {
			s.member.expire(id)
		} else {
			s.endSession(id)
		}
	}
	s.armExpiry()
	return due
}

// armCleaning makes sure that empty containers are found.
func (s *Server) armCleaning() {
	if s.member == nil && s.cleaning == nil && len(s.db.tree.containers) > 0 && !s.closed && !s.down {
		s.cleaning = time.AfterFunc(containerCheck, s.clean)
	}
}

func (s *Server) clean() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cleaning = nil
	if s.closed || s.down {
		return
	}
	for _, path := range s.db.idleContainers() {
		s.watches.fire(s.db.deleteContainer(path))
	}
	s.armCleaning()
}
