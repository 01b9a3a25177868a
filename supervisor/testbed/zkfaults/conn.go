package zkfaults

import (
	"bufio"
	"encoding/binary"
	"io"
	"net"
	"sync"
	"sync/atomic"

	"understudy/election/jute"
	"understudy/election/zkmem"
)

// conn is one client connection. Three goroutines carry it: one reads frames into the lane in, one answers them, one
// writes what is in the lane out.
type conn struct {
	net net.Conn
	in  *lane
	out *lane

	// guarded by the server's lock
	*zkmem.Client
	number int64    // counts the server's connections
	over   bool     // the server has done with it, though the client may not know yet
	change *request // the newest change that was asked for; nil: none of several servers

	received, sent atomic.Int64
}

// prompt is a connection whose Write never waits, and so needs no goroutine.
type prompt interface{ NeverWaits() }

func newConn(nc net.Conn) *conn {
	c := &conn{net: nc, in: newLane(), out: newLane()}
	c.Client = zkmem.NewClient(c)
	return c
}

func (c *conn) addr() string {
	if addr := c.net.RemoteAddr(); addr != nil {
		return addr.String()
	}
	return ""
}

// carry runs the connection until both sides have done with it. answer is called for one frame after the other.
func (c *conn) carry(limit int, answer func(frame []byte), peerLeft func()) {
	var wait sync.WaitGroup
	wait.Go(func() { c.read(limit, answer) })
	wait.Go(c.write)
	for {
		frame, ok := c.in.pop()
		if !ok {
			break
		}
		answer(frame)
	}
	peerLeft()
	wait.Wait()
}

// read takes frames off the network. A four-letter word is one of them, recognised by its being no possible length.
func (c *conn) read(limit int, answer func(frame []byte)) {
	defer c.out.leave()
	defer c.in.finish()
	in := bufio.NewReaderSize(c.net, 1<<10)
	for first := true; c.in.room(); first = false {
		var head [4]byte
		if _, err := io.ReadFull(in, head[:]); err != nil {
			return
		}
		if first && zkmem.IsWord(string(head[:])) {
			c.in.push(head[:])
			return
		}
		body, err := jute.ReadFrameBody(in, int32(binary.BigEndian.Uint32(head[:])), limit)
		if err != nil {
			return
		}
		c.in.pass(append(head[:], body...), answer)
	}
}

func (c *conn) write() {
	defer c.net.Close()
	for {
		frame, ok := c.out.pop()
		if !ok {
			return
		}
		if !c.put(frame) {
			return
		}
	}
}

func (c *conn) put(frame []byte) bool {
	if _, err := c.net.Write(frame); err != nil {
		c.out.abort()
		return false
	}
	return true
}

// abort ends the connection at once, whatever is still on its way.
func (c *conn) abort() {
	c.over = true
	c.in.abort()
	c.out.abort()
	_ = c.net.Close()
}

// HangUp ends the connection after all answers so far. The client learns of it when the network lets it.
func (c *conn) HangUp() {
	c.over = true
	c.in.abort()
	c.out.finish()
}

// Send implements zkmem.Line.
func (c *conn) Send(records ...jute.Record) {
	c.sent.Add(1)
	if _, ok := c.net.(prompt); ok {
		c.out.pass(jute.Frame(records...), func(frame []byte) { c.put(frame) })
		return
	}
	c.out.push(jute.Frame(records...))
}
