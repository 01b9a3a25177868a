package election

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// DialFunc opens a connection to a server.
type DialFunc func(ctx context.Context, address string) (net.Conn, error)

func dialTCP(ctx context.Context, address string) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, "tcp", address) // the name is looked up anew each time
}

// dialer gives one session its connections, one after the other. It is the client's host provider too: the first round
// over the servers goes without a pause, later ones with a short growing one.
type dialer struct {
	servers []string
	dial    DialFunc
	now     func() time.Duration
	greeted func(handshake)

	ctx    context.Context // ends with the session; a dial has no other way to learn it
	cancel context.CancelFunc

	seen   atomic.Int64 // the newest zxid
	resume *handshake   // the session that is carried over; nil: a new one is opened

	mu      sync.Mutex // guards what follows
	limit   time.Duration
	next    int
	failed  int // dials since the last one that led to a session
	current *wire
	auth    *Auth
	last    error
	shut    bool
}

func newDialer(ctx context.Context, cfg *Config, greeted func(handshake)) *dialer {
	d := &dialer{
		servers: cfg.Servers, dial: dialing(cfg.Dial, cfg.TLS), auth: cfg.Auth, greeted: greeted,
		now: cfg.Now, limit: stallLimit(cfg.Timeout), next: rand.IntN(len(cfg.Servers)),
	}
	if d.now == nil { // who has no lease does not ask
		d.now = func() time.Duration { return 0 }
	}
	d.ctx, d.cancel = context.WithCancel(context.WithoutCancel(ctx))
	return d
}

// Init, Len, Next and Connected make it a zk.HostProvider.
func (d *dialer) Init([]string) error { return nil }

// Len is the number of servers.
func (d *dialer) Len() int { return len(d.servers) }

// Next names the server to try. Its second result makes the client look whether it was told to quit: otherwise it would
// dial for ever after the end of the session.
func (d *dialer) Next() (string, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.next = (d.next + 1) % len(d.servers)
	return d.servers[d.next], d.shut
}

// Connected tells that a session stands.
func (d *dialer) Connected() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.failed, d.last = 0, nil
}

func (d *dialer) pause() time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	round := d.failed / len(d.servers)
	d.failed++
	if round == 0 {
		return 0
	}
	pause := min(20*time.Millisecond<<min(round-1, 4), 250*time.Millisecond)
	return pause/2 + rand.N(pause/2)
}

// open is the client's Dialer.
func (d *dialer) open(_, address string, _ time.Duration) (net.Conn, error) {
	select {
	case <-time.After(d.pause()):
	case <-d.ctx.Done():
		return nil, ErrClosed
	}
	ctx, cancel := context.WithTimeout(d.ctx, d.bounds())
	defer cancel()
	conn, err := d.dial(ctx, address)
	if err != nil {
		d.failedWith(err)
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	w := &wire{
		Conn: conn, limit: d.limit, auth: d.auth, seen: &d.seen, before: d.seen.Load(), now: d.now, greeted: d.greeted, refused: d.failedWith,
		resume: d.resume,
	}
	if d.shut {
		conn.Close()
		return nil, ErrClosed
	}
	d.current = w
	return w, nil
}

// bound says how long a dial, or a server's silence, may last.
func (d *dialer) bound(limit time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.limit = limit
}

func (d *dialer) bounds() time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.limit
}

func (d *dialer) failedWith(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.last = err
}

// trouble is the newest reason why there is no session, or nil.
func (d *dialer) trouble() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.last == nil {
		return errors.New("no answer")
	}
	return d.last
}

// kick closes the present connection, so that the client goes to another server with the same session.
func (d *dialer) kick() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.current != nil {
		d.current.Close()
	}
}

// authenticate shows other credentials from the next connection on, and has that made at once.
func (d *dialer) authenticate(a *Auth) {
	d.mu.Lock()
	d.auth = a
	d.mu.Unlock()
	d.kick()
}

func (d *dialer) localAddr() net.Addr {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.current == nil {
		return nil
	}
	return d.current.LocalAddr()
}

// shutdown ends all dialing for good. Nothing of the session reaches the network after it.
func (d *dialer) shutdown() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.shut = true
	d.cancel()
	if d.current != nil {
		d.current.Close()
	}
}
