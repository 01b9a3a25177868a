package zkmem

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"understudy/election/jute"
)

// ErrClosed is what Serve returns after Close.
var ErrClosed = errors.New("zkmem: server closed")

// Server is a ZooKeeper server. Its methods may be called at the same time. It grants session timeouts of 2 to 20 ticks.
type Server struct {
	tick time.Duration

	mu       sync.Mutex // guards what follows
	data     *Data
	watches  Watches
	sessions map[int64]*session
	next     int64 // session
	expiry   *time.Timer
	open     map[io.Closer]struct{} // listeners and connections
	figures  Figures
	closed   bool
}

type session struct {
	timeout time.Duration
	heard   time.Time
	conn    *conn // the newest
}

// New makes a server with an empty tree. Close must be called at the end.
func New(tick time.Duration) *Server {
	s := &Server{tick: tick, data: NewData(), watches: NewWatches(), sessions: map[int64]*session{}, next: FirstSession(time.Now()),
		open: map[io.Closer]struct{}{}, figures: Figures{Tick: tick, Least: 2 * tick, Longest: 20 * tick}}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expiry = time.AfterFunc(tick, s.expire)
	return s
}

// FirstSession is the id of the first session of a server that starts now; the next ones count on.
func FirstSession(now time.Time) int64 {
	return int64(uint64(now.UnixMilli())<<24>>8) | 1<<56 // the top byte is the server's id
}

// Serve serves the connections of l, which it closes, until l fails or the server is closed: then the error is ErrClosed. It
// returns when the last of its connections has ended.
func (s *Server) Serve(l net.Listener) error {
	var wait sync.WaitGroup
	defer wait.Wait()
	defer l.Close()
	if !s.holds(l) {
		return ErrClosed
	}
	defer s.drop(l)
	for {
		nc, err := l.Accept()
		switch {
		case err == nil:
			wait.Go(func() { s.serve(nc) })
		case s.isClosed():
			return ErrClosed
		default:
			return fmt.Errorf("zkmem: %w", err)
		}
	}
}

// Close ends every listener and connection. The sessions end with the server.
func (s *Server) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.expiry.Stop()
	for c := range s.open {
		_ = c.Close()
	}
	return nil
}

func (s *Server) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// holds has Close close c as well; false means that it is too late for that.
func (s *Server) holds(c io.Closer) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.open[c] = struct{}{}
	}
	return !s.closed
}

func (s *Server) drop(c io.Closer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, c)
}

// expire ends the sessions of which nothing was heard, at a tick.
func (s *Server) expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	for id, v := range s.sessions {
		if time.Since(v.heard) >= v.timeout {
			s.end(id)
			v.conn.HangUp()
			s.watches.Drop(v.conn.client)
		}
	}
	s.expiry.Reset(s.tick)
}

// end ends a session with everything that hangs on it.
func (s *Server) end(id int64) {
	delete(s.sessions, id)
	s.watches.Fire(s.data.EndSession(id))
}

// touch notes a sign of life; false means that there is no such session.
func (s *Server) touch(c *conn) bool {
	v := s.sessions[c.client.Session]
	if v != nil {
		v.timeout, v.heard = c.client.Timeout, time.Now()
	}
	return v != nil
}

// greet answers a handshake.
func (s *Server) greet(c *conn, hello jute.ConnectRequest) {
	if hello.LastZxidSeen > s.data.Zxid {
		c.HangUp() // the client has seen more than there is: it must try another server
		return
	}
	asked := time.Duration(hello.Timeout) * time.Millisecond
	c.client.Timeout = min(max(asked, s.figures.Least), s.figures.Longest)
	c.client.Session = hello.SessionID
	if hello.SessionID == 0 {
		s.data.Skip()
		c.client.Session = s.next
		s.sessions[s.next] = &session{conn: c}
		s.next++
	}
	// The connection that a session had is closed, even if the password turns out to be wrong.
	if v := s.sessions[hello.SessionID]; v != nil {
		v.conn.HangUp()
		s.watches.Drop(v.conn.client)
	}
	if hello.SessionID != 0 && string(hello.Password) != string(Password(hello.SessionID)) || !s.touch(c) {
		c.client.Refuse(hello)
		return
	}
	s.sessions[c.client.Session].conn = c
	c.client.Admit(hello)
}

// answer answers a request.
func (s *Server) answer(c *conn, h jute.RequestHeader, body []byte) {
	var record jute.Record
	var code jute.Code
	switch {
	case h.Op == jute.OpAuth:
		c.client.Authenticate(h, body)
		return
	case !s.touch(c):
		return
	case h.Op == jute.OpCloseSession: // events come first, then the answer, then the end of the connection
		s.end(c.client.Session)
		s.watches.Drop(c.client)
		defer c.HangUp()
	case h.Op.Writes():
		var changes []Change
		record, code, changes = s.data.Do(c.client.Caller, NewOrder(h.Op, body))
		s.watches.Fire(changes)
	default:
		record, code = s.data.Read(s.watches, c.client, h.Op, body)
	}
	c.client.Answer(h, s.data.Zxid, record, code)
}
