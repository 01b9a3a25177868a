package election

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// DialFunc opens a connection to a server.
type DialFunc func(ctx context.Context, address string) (net.Conn, error)

// hosts chooses the next server to try. The first round over the servers has no pause, later ones have a short growing one.
type hosts struct {
	servers []string

	mu     sync.Mutex // guards the fields below
	next   int
	failed int   // dials since the last one that led to a session
	silent int   // of these, servers that took the connection and then did not let us in in time
	last   error // why the newest dial led to none
}

func (h *hosts) another() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.next = (h.next + 1) % len(h.servers)
	return h.servers[h.next]
}

// prefer has another name that server next.
func (h *hosts) prefer(server string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if i := slices.Index(h.servers, server); i >= 0 {
		h.next = i + len(h.servers) - 1
	}
}

func (h *hosts) connected() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.failed, h.silent, h.last = 0, 0, nil
}

// pause is how long to wait before the next dial, and how many times longer than usual its server may take to let us in: with a slow disk
// all do, and a server that is down says nothing of that.
func (h *hosts) pause() (pause time.Duration, patience int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	round := h.failed / len(h.servers)
	h.failed++
	patience = min(1+h.silent/len(h.servers), mostPatient)
	if round == 0 {
		return 0, patience
	}
	pause = min(20*time.Millisecond<<min(round-1, 4), 250*time.Millisecond)
	return pause/2 + rand.N(pause/2), patience
}

func (h *hosts) failedWith(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last = err
	if errors.Is(err, os.ErrDeadlineExceeded) {
		h.silent++
	}
}

// trouble is the newest reason for having no session, or nil.
func (h *hosts) trouble() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.last == nil {
		return errors.New("neither an answer nor a refusal came")
	}
	return h.last
}

// dialer gives one session its connections, one after the other. It is the client's zk.HostProvider too.
type dialer struct {
	hosts   *hosts
	dial    DialFunc
	now     func() time.Duration
	greeted func(handshake)

	ctx    context.Context // ends with the session; a dial has no other way to learn it
	cancel context.CancelFunc

	seen   atomic.Int64 // the newest zxid
	resume *handshake   // the session to continue; nil: open a new one

	limit  time.Duration // of a dial, and of a server's silence
	leased bool          // heartbeats find out a server that does not answer

	mu      sync.Mutex // guards the fields below
	current *wire
	auth    *Auth // what is shown
}

func newDialer(ctx context.Context, cfg *Config, greeted func(handshake)) *dialer {
	d := &dialer{
		hosts: &hosts{servers: cfg.Servers, next: rand.IntN(len(cfg.Servers))},
		dial:  cfg.dialing(), auth: cfg.Auth, greeted: greeted, now: cfg.Now, limit: stallLimit(cfg.Lease), leased: cfg.Now != nil,
	}
	if d.now == nil { // a client without a lease needs no clock
		d.now = func() time.Duration { return 0 }
	}
	d.ctx, d.cancel = context.WithCancel(context.WithoutCancel(ctx))
	return d
}

// Init implements zk.HostProvider.
func (d *dialer) Init([]string) error { return nil }

// Len is the number of servers.
func (d *dialer) Len() int { return len(d.hosts.servers) }

// Next names the server to try. Its second result makes the client look whether it was told to quit: otherwise it would
// dial for ever after the end of the session.
func (d *dialer) Next() (string, bool) { return d.hosts.another(), d.ctx.Err() != nil }

// Connected notes that a session is open.
func (d *dialer) Connected() { d.hosts.connected() }

// open is the client's Dialer.
func (d *dialer) open(_, address string, _ time.Duration) (net.Conn, error) {
	d.kick() // the client comes back a moment before it closes the previous one, which counts in the server's maxClientCnxns
	pause, patience := d.hosts.pause()
	select {
	case <-time.After(pause):
	case <-d.ctx.Done():
		return nil, ErrClosed
	}
	ctx, cancel := context.WithTimeout(d.ctx, d.limit)
	defer cancel()
	conn, err := d.dial(ctx, address)
	if err != nil {
		d.hosts.failedWith(err)
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ctx.Err() != nil {
		conn.Close()
		return nil, ErrClosed
	}
	d.current = &wire{
		Conn: conn, server: address, limit: d.limit * time.Duration(patience), patient: d.leased, auth: d.auth,
		seen: &d.seen, before: d.seen.Load(), now: d.now, greeted: d.greeted,
		refused: d.hosts.failedWith, resume: d.resume,
	}
	return d.current, nil
}

// mostPatient is how many times longer than usual a server may take to let us in.
const mostPatient = 4

// server is where the present connection leads; "": there is none.
func (d *dialer) server() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.current == nil || !d.current.stands.Load() {
		return ""
	}
	return d.current.server
}

// moveTo closes the present connection, so that the client goes to that server with the same session.
func (d *dialer) moveTo(server string) {
	d.hosts.prefer(server)
	d.kick()
}

// kick closes the present connection, so that the client goes to another server with the same session.
func (d *dialer) kick() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.current != nil {
		d.current.Close()
	}
}

// authenticate uses other credentials from the next connection on, and makes that at once.
func (d *dialer) authenticate(a *Auth) {
	d.mu.Lock()
	d.auth = a
	d.mu.Unlock()
	d.kick()
}

func (d *dialer) shown() *Auth {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.auth
}

func (d *dialer) localAddr() net.Addr {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.current == nil {
		return nil
	}
	return d.current.LocalAddr()
}

// shutdown ends all dialing for good. After it the session sends nothing.
func (d *dialer) shutdown() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.cancel()
	if d.current != nil {
		d.current.Close()
	}
}
