package election

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/hashicorp/go-hclog"
)

// Config says where ZooKeeper is and who we are.
type Config struct {
	Servers []string
	Root    string
	Timeout time.Duration
	Floor   time.Duration // no server ever grants less; 0: nobody says so
	Auth    *Auth
	TLS     *TLS // nil: plain
	Node    Node
	Logger  hclog.Logger
	Dial    DialFunc             // nil: TCP
	Now     func() time.Duration // CLOCK_BOOTTIME: it counts on while the machine is suspended

	// Strangers says that others than the nodes reach the servers, which let everybody end any session at any moment.
	Strangers bool
}

// Session is one ZooKeeper session, served by one client. Once over, it is over: there is always a new one.
type Session struct {
	cfg    *Config
	log    hclog.Logger
	conn   *zk.Conn
	dialer *dialer
	acl    []zk.ACL
	kill   context.CancelCauseFunc // ends the serving

	steady steadiness
	waits  waits
	former map[int64]*sign // sessions in whose place we are; set before the serving

	resumes bool // it was carried over: it stands, with the lease that was left

	mu        sync.Mutex // guards what follows
	id        int64
	password  []byte
	timeout   time.Duration      // the shortest that a server has granted it: what all counts with
	longest   time.Duration      // the longest that was asked for, or granted
	resumed   chan struct{}      // closed, and made anew, at each (re)connect
	claims    map[string]Release // locks held, by service
	heard     time.Duration      // when a call was last answered
	acked     time.Duration      // when the newest acknowledged write was sent
	end       time.Duration      // of the lease that ZooKeeper backs
	held      time.Duration      // until when others have promised to start nothing; 0: they have not
	ending    bool               // what is served was told to end with the lease
	follow    func(end time.Duration)
	shorten   func(context.Context) error
	shorter   chan struct{} // holds one when the lease has become shorter
	node      Node
	described []byte // node, encoded; nil after a change
	auth      *Auth  // what is shown
	over      error
	ended     chan struct{} // closed when the lease is at its end
}

// LocalAddr is the address that ZooKeeper is reached from, nil when it is not reached.
func (s *Session) LocalAddr() net.Addr { return s.dialer.localAddr() }

// ACL is what is created with: with credentials, it is its creator's alone.
func ACL(cfg Config) []zk.ACL {
	if cfg.Auth != nil {
		return zk.AuthACL(zk.PermAll)
	}
	return zk.WorldACL(zk.PermAll)
}

// Ensemble is ZooKeeper as we reach it: sessions one after the other, and the closing of those that ended badly.
type Ensemble struct {
	cfg     Config
	closing sync.WaitGroup

	mu   sync.Mutex // guards auth
	auth *Auth      // of the next session
}

// New prepares to talk to ZooKeeper.
func New(cfg Config) *Ensemble { return &Ensemble{cfg: cfg, auth: cfg.Auth} }

// Show has the next session show other credentials.
func (e *Ensemble) Show(a *Auth) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.auth = a
}

func (e *Ensemble) shown() *Auth {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.auth
}

// Wait returns when nothing runs in the background any more.
func (e *Ensemble) Wait() { e.closing.Wait() }

// Open establishes a session, registers the node, and calls serve with it. It keeps the lease extended for as long as
// serve runs. The context of serve ends when the session cannot be trusted for long any more; serve has then to end what
// it runs before Ended is closed, and returns nil only when nothing of it is left alive: then, and only then, the session
// is closed, which gives back all its locks.
func (e *Ensemble) Open(ctx context.Context, serve func(context.Context, *Session) error) error {
	cfg := e.cfg
	cfg.Auth = e.shown()
	return e.open(ctx, newSession(&cfg), func(*dialer) {}, serve)
}

func newSession(cfg *Config) *Session {
	return &Session{
		cfg: cfg, log: cfg.Logger, acl: ACL(*cfg), auth: cfg.Auth,
		resumed: make(chan struct{}), ended: make(chan struct{}), shorter: make(chan struct{}, 1), longest: cfg.Timeout, claims: map[string]Release{}, node: cfg.Node,
	}
}

func (e *Ensemble) open(ctx context.Context, s *Session, prepare func(*dialer), serve func(context.Context, *Session) error) error {
	serving, kill := context.WithCancelCause(ctx)
	defer kill(nil)
	s.kill = kill
	s.dialer = newDialer(ctx, s.cfg, s.greeted)
	prepare(s.dialer)
	defer s.dialer.shutdown()

	conn, _, err := zk.Connect(s.cfg.Servers, s.cfg.Timeout, zk.WithDialer(s.dialer.open), zk.WithHostProvider(s.dialer),
		zk.WithEventCallback(s.noticed), zk.WithLogger(quiet{s.log}), zk.WithLogInfo(false), zk.WithMaxConnBufferSize(128<<10))
	if err != nil {
		return fmt.Errorf("connect to ZooKeeper: %w", err)
	}
	s.conn = conn
	if !s.resumes {
		err = s.establish(serving)
	}
	if err == nil {
		err = s.keep(serving, serve)
		if err != nil {
			s.Expire(err) // P2: what may be alive keeps its lock, until the session ends by itself
			e.discard(conn)
			return err
		}
	}
	if cause := context.Cause(serving); errors.Is(cause, ErrLeaseEnding) {
		s.Expire(cause) // there is nobody whom a proper close would reach
	}
	if over := s.Over(); over != nil {
		e.discard(conn)
		e.closeOld(ctx, s)
		return over
	}
	conn.Close()
	if cause := context.Cause(serving); err == nil && errors.Is(cause, ErrShortened) {
		return cause
	}
	return err
}

// discard ends a client whose session is over: it takes a second to notice, in which the next session can stand.
func (e *Ensemble) discard(conn *zk.Conn) { e.closing.Go(conn.Close) }

// closeOld closes a session that ended badly as soon as a server can be reached, so that nobody has to wait for it to
// expire. All that was served under it is dead.
func (e *Ensemble) closeOld(ctx context.Context, s *Session) {
	ticket := s.Ticket()
	releases := s.openClaims()
	if ticket.Session == 0 {
		return
	}
	e.closing.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
		defer cancel()
		if err := ticket.Close(ctx, e.cfg.Dial, releases, true); err != nil {
			s.log.Debug("former session not closed", "session", SessionName(ticket.Session), "error", err)
		}
	})
}

// keep runs serve, the heartbeat and the lease's timer, and returns when all have ended.
func (s *Session) keep(serving context.Context, serve func(context.Context, *Session) error) error {
	beating, stop := context.WithCancel(context.WithoutCancel(serving))
	var wg sync.WaitGroup
	wg.Go(func() { s.beat(beating) })
	wg.Go(func() { s.watchLease(beating) })
	err := serve(serving, s)
	stop()
	wg.Wait()
	return err
}

// establish waits for a session and registers the node, which gives the first lease.
func (s *Session) establish(ctx context.Context) error {
	complain := time.NewTimer(min(s.cfg.Timeout/4, time.Second))
	defer complain.Stop()
	for {
		ready := s.Resumed()
		if s.ID() != 0 {
			break
		}
		select {
		case <-ready:
		case <-complain.C:
			s.log.Warn("no ZooKeeper server reachable, still trying", "servers", s.cfg.Servers, "error", s.dialer.trouble())
			complain.Reset(30 * time.Second)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	watching, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { s.watchSilence(watching) })
	err := s.register(ctx)
	stop()
	wg.Wait()
	return err
}

// watchSilence gives a session up that has no lease yet and is not answered: after a loss of data the servers hang up on a
// client that has seen more than they have, for ever.
func (s *Session) watchSilence(ctx context.Context) {
	s.answeredNow()
	look := time.NewTicker(s.Timeout() / 4)
	defer look.Stop()
	for {
		select {
		case <-look.C:
		case <-ctx.Done():
			return
		}
		now := s.cfg.Now()
		s.mu.Lock()
		silent := now - s.heard
		s.mu.Unlock()
		if silent > s.Timeout() {
			s.Expire(ErrExpired)
			return
		}
	}
}

// answeredNow notes that a server has answered a call.
func (s *Session) answeredNow() {
	now := s.cfg.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heard = now
}

// noticed is called by the client; it must not block.
func (s *Session) noticed(ev zk.Event) {
	if ev.Type != zk.EventSession || ev.State != zk.StateHasSession {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.resumed)
	s.resumed = make(chan struct{})
}

// finish ends the session at once. The caller holds mu.
func (s *Session) finish(why error) {
	if s.over != nil {
		return
	}
	s.over = why
	s.end, s.held = 0, 0
	s.kill(why)
	close(s.ended)
	s.dialer.shutdown()
}

// Expire ends the session: somebody knows that it cannot be trusted any more.
func (s *Session) Expire(why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.finish(why)
}

// Over tells why the session is over, or nil.
func (s *Session) Over() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.over
}

// Ended is closed when the lease has ended: nothing that needs it may be alive.
func (s *Session) Ended() <-chan struct{} { return s.ended }

// Resumed returns a channel that is closed at the next (re)connect.
func (s *Session) Resumed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.resumed
}

// ID is the session's id.
func (s *Session) ID() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.id
}

// Timeout is what the session counts with: the shortest that a server has granted it.
func (s *Session) Timeout() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.timeout
}

// Follow has f told each end of the lease, the present one at once.
func (s *Session) Follow(f func(end time.Duration)) {
	s.mu.Lock()
	s.follow = f
	end := s.end
	s.mu.Unlock()
	f(end)
}

// Stop ends the serving; the session is closed as soon as all that is served has ended.
func (s *Session) Stop(why error) { s.kill(why) }

// LeaseEnd is when the lease ends, on the clock of Config.Now.
func (s *Session) LeaseEnd() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return max(s.end, s.held)
}

// Contained says how process trees are held here, which is known only after a while; the next heartbeat writes it.
func (s *Session) Contained(kind string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.node.Contain = kind
	s.described = nil
}

// Faulty says why a changed config is not taken up, "" that all is in order; the next heartbeat writes it.
func (s *Session) Faulty(why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.node.Fault != why {
		s.node.Fault, s.described = why, nil
	}
}

// nodeData is what nodes/<node> says. It is written often and changes rarely.
func (s *Session) nodeData() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.described == nil {
		s.described = encode(s.node)
	}
	return s.described
}

// remember notes that a lock may be ours from now on.
func (s *Session) remember(p Paths) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.claims[p.Service] = p.Release()
}

// forget notes that a lock is not ours.
func (s *Session) forget(service string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.claims, service)
}

func (s *Session) openClaims() []Release {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Values(s.claims))
}
