package demo

import (
	"fmt"
	"net"
	"sync"
)

// proxy is a node's way to ZooKeeper. Cut, it loses nothing and lets nothing through, like a network that is down:
// what was under way arrives when it is healed.
type proxy struct {
	listener net.Listener
	server   string
	work     sync.WaitGroup
	over     chan struct{}

	mu    sync.Mutex // guards the fields below
	open  chan struct{}
	whole bool // open is closed
	conns map[net.Conn]struct{}
}

func newProxy(server string) (*proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for a node: %w", err)
	}
	p := &proxy{listener: l, server: server, over: make(chan struct{}), open: make(chan struct{}), conns: map[net.Conn]struct{}{}}
	p.heal()
	return p, nil
}

func (p *proxy) addr() string { return p.listener.Addr().String() }

// serve carries connections until close.
func (p *proxy) serve() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			break
		}
		p.work.Go(func() { p.carry(client) })
	}
	p.work.Wait()
}

func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.whole {
		p.open, p.whole = make(chan struct{}), false
	}
}

func (p *proxy) heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.whole {
		close(p.open)
		p.whole = true
	}
}

func (p *proxy) close() {
	_ = p.listener.Close()
	close(p.over)
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		_ = c.Close()
	}
}

// pass waits until bytes may pass.
func (p *proxy) pass() bool {
	for {
		p.mu.Lock()
		open := p.open
		p.mu.Unlock()
		select {
		case <-open:
		case <-p.over:
			return false
		}
		p.mu.Lock()
		whole := p.whole
		p.mu.Unlock()
		if whole {
			return true
		}
	}
}

// keep remembers a connection, and returns what ends it.
func (p *proxy) keep(c net.Conn) (end func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conns[c] = struct{}{}
	select {
	case <-p.over:
		_ = c.Close()
	default:
	}
	return func() {
		_ = c.Close()
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.conns, c)
	}
}

func (p *proxy) carry(client net.Conn) {
	endClient := p.keep(client)
	defer endClient()
	if !p.pass() {
		return
	}
	server, err := net.Dial("tcp", p.server)
	if err != nil {
		return
	}
	endServer := p.keep(server)
	defer endServer()
	var back sync.WaitGroup
	back.Go(func() {
		p.copy(client, server)
		endClient()
	})
	p.copy(server, client)
	endServer()
	back.Wait()
}

func (p *proxy) copy(to, from net.Conn) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if !p.pass() {
			return
		}
		if n > 0 {
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
