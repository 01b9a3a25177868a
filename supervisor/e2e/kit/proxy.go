package kit

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Op is the kind of a request, as the protocol numbers it. Multi requests are told apart by their first operation.
type Op int32

// The operations that tests look for.
const (
	OpCreate       Op = 1
	OpDelete       Op = 2
	OpExists       Op = 3
	OpGet          Op = 4
	OpSet          Op = 5
	OpChildren     Op = 8
	OpPing         Op = 11
	OpChildren2    Op = 12
	OpCheck        Op = 13
	OpMulti        Op = 14
	OpCreate2      Op = 15
	OpCloseSession Op = -11
)

var opNames = map[Op]string{
	OpCreate: "create", OpDelete: "delete", OpExists: "exists", OpGet: "get", OpSet: "set", OpChildren: "children",
	OpPing: "ping", OpChildren2: "children", OpCheck: "check", OpMulti: "multi", OpCreate2: "create", OpCloseSession: "close",
}

func (o Op) String() string {
	if name, ok := opNames[o]; ok {
		return name
	}
	return fmt.Sprint("op ", int32(o))
}

// Request is what the proxy saw of one request.
type Request struct {
	Op    Op
	Parts []Op   // of a multi: its operations
	Path  string // of its first operation, where it has one
}

func (r Request) String() string {
	if len(r.Parts) > 0 {
		return fmt.Sprintf("%v%v %s", r.Op, r.Parts, path.Base(r.Path))
	}
	return fmt.Sprintf("%v %s", r.Op, path.Base(r.Path))
}

// Write tells whether a request changes anything.
func (r Request) Write() bool {
	return slices.Contains([]Op{OpCreate, OpDelete, OpSet, OpMulti, OpCreate2, OpCloseSession}, r.Op)
}

// Is tells whether it is a multi of just these operations.
func (r Request) Is(parts ...Op) bool { return r.Op == OpMulti && slices.Equal(r.Parts, parts) }

// Fate is what the proxy does with a request.
type Fate int

// The fates.
const (
	Pass        Fate = iota
	CutBefore        // the connection breaks; the server never sees the request
	CutAfter         // the server gets the request, and the connection breaks when its reply is there
	DropReply        // the reply vanishes, all else goes on
	HoldForever      // the request vanishes, all else goes on
)

func (f Fate) String() string {
	return [...]string{"pass", "cut before", "cut after", "reply lost", "request lost"}[f]
}

// Proxy stands between supervisors and a server, and understands as much of the protocol as it takes to let a single
// request suffer.
type Proxy struct {
	listener net.Listener
	server   string
	work     sync.WaitGroup

	mu    sync.Mutex // guards what follows
	judge func(Request) Fate
	seen  []Request
	conns map[net.Conn]bool
	shut  bool
}

// NewProxy listens on the lab's own address, on behalf of a server.
func (l *Lab) NewProxy(tb testing.TB, server string) *Proxy {
	tb.Helper()
	return newProxy(tb, net.JoinHostPort(l.Addr(), "0"), server)
}

// ProxyAt is NewProxy on a given address.
func (l *Lab) ProxyAt(tb testing.TB, addr, server string) *Proxy {
	tb.Helper()
	return newProxy(tb, addr, server)
}

func newProxy(tb testing.TB, on, server string) *Proxy {
	tb.Helper()
	listener, err := net.Listen("tcp", on)
	if err != nil {
		tb.Fatal(err)
	}
	p := &Proxy{listener: listener, server: server, conns: map[net.Conn]bool{}}
	p.work.Go(p.accept)
	tb.Cleanup(p.close)
	return p
}

// Proxies makes one for each server.
func (l *Lab) Proxies(tb testing.TB, servers []string) (all []*Proxy, addrs []string) {
	tb.Helper()
	for _, server := range servers {
		p := l.NewProxy(tb, server)
		all, addrs = append(all, p), append(addrs, p.Addr())
	}
	return all, addrs
}

// Addr is where the proxy listens.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Judge sets what decides on every request from now on; nil lets all pass.
func (p *Proxy) Judge(judge func(Request) Fate) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.judge = judge
}

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
	l := &link{proxy: p, client: client, server: server, doomed: map[int32]Fate{}}
	var back sync.WaitGroup
	back.Go(func() {
		_ = l.replies() // its end is the connection's end
		client.Close()
	})
	_ = l.requests()
	client.Close()
	server.Close()
	back.Wait()
}

func (p *Proxy) decide(r Request) Fate {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen = append(p.seen, r)
	if p.judge == nil {
		return Pass
	}
	return p.judge(r)
}

// link is one connection through the proxy.
type link struct {
	proxy          *Proxy
	client, server net.Conn

	mu     sync.Mutex // guards what follows
	doomed map[int32]Fate
}

var errCut = errors.New("cut")

// requests carries frames from the client. The first one is the handshake, which has no header.
func (l *link) requests() error {
	for first := true; ; first = false {
		frame, err := readFrame(l.client)
		if err != nil {
			return err
		}
		fate := Pass
		if !first && len(frame) >= 12 {
			fate = l.proxy.decide(parseRequest(frame[4:]))
			l.mu.Lock()
			if fate == CutAfter || fate == DropReply {
				l.doomed[int32(binary.BigEndian.Uint32(frame[4:]))] = fate
			}
			l.mu.Unlock()
		}
		switch fate {
		case CutBefore:
			return errCut
		case HoldForever:
			continue
		}
		if _, err := l.server.Write(frame); err != nil {
			return err
		}
	}
}

// replies carries frames from the server.
func (l *link) replies() error {
	for first := true; ; first = false {
		frame, err := readFrame(l.server)
		if err != nil {
			return err
		}
		if !first && len(frame) >= 8 {
			l.mu.Lock()
			fate := l.doomed[int32(binary.BigEndian.Uint32(frame[4:]))]
			l.mu.Unlock()
			if fate == CutAfter {
				return errCut
			}
			if fate == DropReply {
				continue
			}
		}
		if _, err := l.client.Write(frame); err != nil {
			return err
		}
	}
}

// readFrame returns a frame with the four bytes that tell its length. Four-letter words do not pass.
func readFrame(r io.Reader) ([]byte, error) {
	head := make([]byte, 4)
	if _, err := io.ReadFull(r, head); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(head)
	if n > 64<<20 {
		return nil, errors.New("no frame of the protocol")
	}
	frame := make([]byte, 4+n)
	copy(frame, head)
	_, err := io.ReadFull(r, frame[4:])
	return frame, err
}

// Heartbeat tells whether a request only keeps a session or a lease alive.
func (r Request) Heartbeat() bool {
	return r.Op == OpPing || r.Op == OpSet && strings.Contains(r.Path, "/nodes/")
}
