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

	mu     sync.Mutex // guards shut
	shut   bool
	opened *sync.Cond
}

func newGate() (*gate, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for a node: %w", err)
	}
	g := &gate{Listener: l}
	g.opened = sync.NewCond(&g.mu)
	return g, nil
}

// set shuts or opens it.
func (g *gate) set(shut bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = shut
	g.opened.Broadcast()
}

// pass waits until bytes may pass.
func (g *gate) pass() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.shut {
		g.opened.Wait()
	}
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
