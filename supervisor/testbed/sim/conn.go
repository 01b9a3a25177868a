package sim

import (
	"io"
	"net"
	"os"
	"time"

	"understudy/election/jute"
)

// conn is one end of a connection.
type conn struct {
	number  int
	link    *link
	in, out *stream
	addr    addr
	owner   *gate // of a client end: the process
}

// Read implements net.Conn.
func (c *conn) Read(p []byte) (int, error) {
	n := c.link.net
	n.mu.Lock()
	defer n.mu.Unlock()
	s := c.in
	for {
		switch {
		case s.unread:
			return 0, net.ErrClosed
		case !s.limit.IsZero() && !time.Now().Before(s.limit):
			return 0, os.ErrDeadlineExceeded
		case len(s.arrived) > 0:
			k := copy(p, s.arrived)
			if s.arrived = s.arrived[k:]; len(s.arrived) == 0 {
				s.arrived = nil
			}
			return k, nil
		case s.err != nil:
			return 0, s.err
		case s.ended:
			return 0, io.EOF
		}
		s.watchLimit()
		s.ready.Wait()
	}
}

// watchLimit makes sure that a reader that waits is woken at its deadline. The alarm is left to ring when a deadline moves.
func (s *stream) watchLimit() {
	if s.limit.IsZero() || s.alarming {
		return
	}
	s.alarming = true
	wait := time.Until(s.limit)
	if s.alarm == nil {
		s.alarm = time.AfterFunc(wait, s.rung)
	} else {
		s.alarm.Reset(wait)
	}
}

func (s *stream) rung() {
	s.net.mu.Lock()
	defer s.net.mu.Unlock()
	s.alarming = false
	s.ready.Broadcast()
}

// Write implements net.Conn. It never waits: the network takes it all.
func (c *conn) Write(p []byte) (int, error) {
	n := c.link.net
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case c.out.closed:
		return 0, net.ErrClosed
	case c.out.err != nil:
		return 0, c.out.err
	case c.out.unread: // nobody reads; the sender learns of it by the end of the other stream
		return len(p), nil
	}
	c.out.push(append(make([]byte, 0, len(p)), p...))
	return len(p), nil
}

// Close implements net.Conn: the other end reads the end after all that was written.
func (c *conn) Close() error { c.shut(true); return nil }

// shut closes; without telling, it does so as a host that loses power.
func (c *conn) shut(tell bool) {
	n := c.link.net
	n.mu.Lock()
	defer n.mu.Unlock()
	if c.in.unread {
		return
	}
	delete(c.link.conns, c)
	c.in.unread, c.out.closed = true, true
	for _, t := range []*time.Timer{c.in.alarm, c.in.timer} {
		if t != nil {
			t.Stop()
		}
	}
	if tell {
		c.out.push(nil)
	}
	c.in.ready.Broadcast()
}

// SetReadDeadline implements net.Conn.
func (c *conn) SetReadDeadline(t time.Time) error {
	n := c.link.net
	n.mu.Lock()
	defer n.mu.Unlock()
	if s := c.in; s.alarming && !t.IsZero() && t.Before(s.limit) {
		s.alarm.Stop()
		s.alarming = false
		s.limit = t
		s.ready.Broadcast()
		return nil
	}
	c.in.limit = t
	return nil
}

// SetWriteDeadline implements net.Conn.
func (c *conn) SetWriteDeadline(time.Time) error { return nil }

// SetDeadline implements net.Conn.
func (c *conn) SetDeadline(t time.Time) error { return c.SetReadDeadline(t) }

// NeverWaits tells the server that Write does not.
func (c *conn) NeverWaits() {}

// LocalAddr implements net.Conn.
func (c *conn) LocalAddr() net.Addr { return addr("here") }

// RemoteAddr implements net.Conn.
func (c *conn) RemoteAddr() net.Addr { return c.addr }

// gated is a connection as a process has it that can be frozen or killed.
type gated struct {
	*conn
	gate *gate
	trap func(at moment, frame []byte)
}

// Read implements net.Conn.
func (g *gated) Read(p []byte) (int, error) {
	if !g.gate.pass() {
		return 0, errCrashed
	}
	n, err := g.conn.Read(p)
	if !g.gate.pass() {
		return 0, errCrashed
	}
	return n, err
}

// Write implements net.Conn.
func (g *gated) Write(p []byte) (int, error) {
	if g.trap != nil {
		g.trap(beforeWrite, p)
	}
	if !g.gate.pass() {
		return 0, errCrashed
	}
	n, err := g.conn.Write(p)
	if g.trap != nil {
		g.trap(afterWrite, p)
	}
	return n, err
}

// Close implements net.Conn. It must not wait: the client calls it with locks held.
func (g *gated) Close() error {
	g.gate.do(func() { _ = g.conn.Close() })
	return nil
}

// tomb is what a process that is no more gets for a connection: the answer that its session is over makes it end at once,
// and nothing of it reaches the world.
type tomb struct {
	net.Conn
	answer []byte
}

func newTomb() net.Conn {
	return &tomb{answer: jute.Frame(jute.ConnectResponse{Password: make([]byte, 16)})}
}

func (t *tomb) Read(p []byte) (int, error) {
	if len(t.answer) == 0 {
		return 0, io.EOF
	}
	n := copy(p, t.answer)
	t.answer = t.answer[n:]
	return n, nil
}

func (t *tomb) Write(p []byte) (int, error)      { return len(p), nil }
func (t *tomb) Close() error                     { return nil }
func (t *tomb) SetReadDeadline(time.Time) error  { return nil }
func (t *tomb) SetWriteDeadline(time.Time) error { return nil }
