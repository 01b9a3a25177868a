package kit

import (
	"fmt"
	"io"
	"net"
	"path"
	"sync"
	"testing"

	"understudy/election/jute"
	"understudy/supervisor/testbed/must"
)

// Request is what the proxy saw of one request.
type Request struct {
	Op    jute.Op
	Parts []jute.Op // of a multi: its operations
	Path  string    // of its first operation, where it has one
}

func (r Request) String() string {
	if len(r.Parts) > 0 {
		return fmt.Sprintf("%v%v %s", r.Op, r.Parts, path.Base(r.Path))
	}
	return fmt.Sprintf("%v %s", r.Op, path.Base(r.Path))
}

// parseRequest reads a request from its header on.
func parseRequest(frame []byte) Request {
	var h jute.RequestHeader
	r := jute.NewReader(frame)
	r.Record(&h)
	request := Request{Op: h.Op}
	switch h.Op {
	case jute.OpPing, jute.OpCloseSession:
	case jute.OpMulti:
		var multi jute.Multi
		r.Record(&multi)
		for _, op := range multi {
			request.Parts = append(request.Parts, op.Op)
		}
		if len(multi) > 0 {
			request.Path = multi[0].Path()
		}
	default:
		request.Path = r.String()
	}
	return request
}

// Proxy stands between supervisors and a server, and remembers each request.
type Proxy struct {
	listener net.Listener
	server   string
	work     sync.WaitGroup

	mu    sync.Mutex // guards the fields below
	seen  []Request
	conns map[net.Conn]bool
	shut  bool
}

// ProxyAt listens on an address, on behalf of a server.
func (l *Lab) ProxyAt(tb testing.TB, addr, server string) *Proxy {
	tb.Helper()
	return newProxy(tb, addr, server)
}

func newProxy(tb testing.TB, on, server string) *Proxy {
	tb.Helper()
	listener, err := net.Listen("tcp", on)
	must.OK(tb, err)
	p := &Proxy{listener: listener, server: server, conns: map[net.Conn]bool{}}
	p.work.Go(p.accept)
	tb.Cleanup(p.close)
	return p
}

// Proxies makes one for each server, on the lab's own address.
func (l *Lab) Proxies(tb testing.TB, servers []string) (all []*Proxy, addrs []string) {
	tb.Helper()
	for _, server := range servers {
		p := newProxy(tb, net.JoinHostPort(l.Addr(), "0"), server)
		all, addrs = append(all, p), append(addrs, p.Addr())
	}
	return all, addrs
}

// Addr is where the proxy listens.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Seen returns the requests since the last call.
func (p *Proxy) Seen() []Request {
	p.mu.Lock()
	defer p.mu.Unlock()
	seen := p.seen
	p.seen = nil
	return seen
}

func (p *Proxy) close() {
	p.mu.Lock()
	p.shut = true
	p.listener.Close()
	for conn := range p.conns {
		conn.Close()
	}
	p.mu.Unlock()
	p.work.Wait()
}

// keep remembers a connection until it is done; false says that the proxy is closed.
func (p *Proxy) keep(conn net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.shut {
		p.conns[conn] = true
	}
	return !p.shut
}

func (p *Proxy) drop(conn net.Conn) {
	conn.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, conn)
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.work.Go(func() { p.serve(client) })
	}
}

// serve carries one connection until either side ends it.
func (p *Proxy) serve(client net.Conn) {
	defer p.drop(client)
	if !p.keep(client) {
		return
	}
	server, err := net.Dial("tcp", p.server)
	if err != nil {
		return
	}
	defer p.drop(server)
	if !p.keep(server) {
		return
	}
	var back sync.WaitGroup
	back.Go(func() {
		_, _ = io.Copy(client, server) // its end is the connection's end
		client.Close()
	})
	p.requests(io.TeeReader(client, server))
	client.Close()
	server.Close()
	back.Wait()
}

// requests reads what the client sends on its way to the server. The first frame is the handshake, which has no header.
func (p *Proxy) requests(sent io.Reader) {
	for first := true; ; first = false {
		frame, err := jute.ReadFrame(sent, 0)
		if err != nil {
			return
		}
		if !first {
			p.note(parseRequest(frame))
		}
	}
}

func (p *Proxy) note(r Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen = append(p.seen, r)
}
