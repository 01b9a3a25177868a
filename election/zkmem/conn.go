package zkmem

import (
	"bufio"
	"net"
	"sync"

	"understudy/election/jute"
)

// waiting is how many frames a client may be behind before it is hung up on.
const waiting = 1 << 13

// conn is one client's connection. The server's lock guards it.
type conn struct {
	net.Conn
	client *Client
	s      *Server
	out    chan []byte
	over   bool
}

// serve serves one connection and returns when both sides have done with it.
func (s *Server) serve(nc net.Conn) {
	defer nc.Close()
	if !s.holds(nc) {
		return
	}
	defer s.drop(nc)
	c := &conn{Conn: nc, s: s, out: make(chan []byte, waiting)}
	c.client = NewClient(c)
	var wait sync.WaitGroup
	defer wait.Wait()
	wait.Go(func() {
		defer nc.Close()
		for frame := range c.out {
			if _, err := nc.Write(frame); err != nil {
				return
			}
		}
	})
	in := bufio.NewReaderSize(nc, 1<<10)
	word, _ := in.Peek(4)
	if IsWord(string(word)) {
		c.tell(string(word))
		return
	}
	for {
		frame, err := jute.ReadFrame(in, 0)
		if err != nil || !c.take(frame) {
			c.left()
			return
		}
	}
}

// take deals with one frame; false means that the server has done with the client.
func (c *conn) take(frame []byte) bool {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	c.s.figures.Received++
	in := jute.NewReader(frame)
	var h jute.RequestHeader
	var hello jute.ConnectRequest
	switch {
	case c.over:
	case c.client.Shaken:
		in.Record(&h)
		if in.Err() == nil {
			c.s.answer(c, h, frame[len(frame)-in.Remaining():])
		}
	default:
		in.Record(&hello)
		if in.Err() == nil {
			c.s.greet(c, hello)
		}
	}
	return in.Err() == nil && !c.over
}

// left hangs up on a client that has gone, or that talks nonsense.
func (c *conn) left() {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	c.s.watches.Drop(c.client)
	c.HangUp()
}

func (c *conn) tell(word string) {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	f := c.s.figures
	_, f.Port, _ = net.SplitHostPort(c.LocalAddr().String())
	f.Connections = len(c.s.sessions) + 1
	c.out <- []byte(c.s.data.Word(word, f))
	c.HangUp()
}

// Send implements Line.
func (c *conn) Send(records ...jute.Record) {
	c.s.figures.Sent++
	if c.over {
		return
	}
	select {
	case c.out <- jute.Frame(records...):
	default:
		c.HangUp()
	}
}

// HangUp implements Line.
func (c *conn) HangUp() {
	if !c.over {
		c.over = true
		close(c.out)
	}
}
