package demo

import (
	"fmt"
	"net"
	"sync"
)

// gate is a node's way to ZooKeeper: the server serves what it accepts. Shut, it loses nothing and lets nothing through, like a network
// that is down: what was under way arrives when it is opened again. It has to be open when the server is closed.
type gate struct {
	net.Listener

	shut bool         // by set's caller
	way  sync.RWMutex // locked while it is shut
}

func newGate() (*gate, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for a node: %w", err)
	}
	return &gate{Listener: l}, nil
}

// set shuts or opens it. One goroutine does.
func (g *gate) set(shut bool) {
	switch {
	case shut && !g.shut:
		g.way.Lock()
	case !shut && g.shut:
		g.way.Unlock()
	}
	g.shut = shut
}

// pass waits until bytes may pass.
func (g *gate) pass() {
	g.way.RLock()
	defer g.way.RUnlock()
}

func (g *gate) Accept() (net.Conn, error) {
	c, err := g.Listener.Accept()
	return gated{c, g}, err
}

// gated is the server's end of a connection.
type gated struct {
	net.Conn
	gate *gate
}

func (c gated) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.gate.pass()
	return n, err
}

func (c gated) Write(p []byte) (int, error) {
	c.gate.pass()
	return c.Conn.Write(p)
}
