package election

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/hashicorp/go-hclog"

	"understudy/supervisor/keyfile"
)

// Config says where ZooKeeper is and who we are.
type Config struct {
	Servers []string
	Root    string
	Lease   time.Duration // 500 ms to 10 minutes, which its session's protocol can name
	Auth    *Auth
	TLS     *keyfile.TLS // nil: plain
	Node    Node
	Logger  hclog.Logger
	Dial    DialFunc             // nil: TCP, by Resolver
	Now     func() time.Duration // CLOCK_BOOTTIME: it counts on while the machine is suspended

	Resolver *Resolver // nil: this process's

	Seen time.Duration               // the longest lease that this node has seen under the root
	Saw  func(longest time.Duration) // is told of a longer one, and must not wait; nil: nobody is

	MostInTurn int // calls in turn at once; 0: mostInTurn. Only the simulation sets it, so that calls wait
}

// Session is one ZooKeeper session, served by one client. A session that is over never comes back: the next one is new.
type Session struct {
	*client
	link
	Lease
	Self Self

	cfg *Config
	log hclog.Logger

	locks     locks
	rollbacks *rollbacks
	seen      *leasesSeen
	beats     beats
	before    *overSessions
}

// LocalAddr is our address on the connection to ZooKeeper; nil: there is none.
func (s *Session) LocalAddr() net.Addr { return s.dialer.localAddr() }

// ACL is the ACL of new znodes: with credentials, only their creator may use them.
func ACL(cfg Config) []zk.ACL {
	if cfg.Auth != nil {
		return zk.AuthACL(zk.PermAll)
	}
	return zk.WorldACL(zk.PermAll)
}

// Sessions opens sessions with ZooKeeper, one after the other, and closes those that ended badly.
type Sessions struct {
	cfg       Config
	closing   sync.WaitGroup
	keeps     atomic.Bool // the servers have kept a session over a reconnect
	rollbacks rollbacks
	seen      leasesSeen
	before    overSessions

	mu   sync.Mutex // guards auth
	auth *Auth      // of the next session
}

// New prepares to talk to ZooKeeper.
func New(cfg Config) *Sessions {
	return &Sessions{cfg: cfg, auth: cfg.Auth, seen: leasesSeen{told: cfg.Saw, longest: cfg.Seen}}
}

// Show makes the next session use other credentials.
func (e *Sessions) Show(a *Auth) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.auth = a
}

func (e *Sessions) shown() *Auth {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.auth
}

// Died says that nothing which a session's lease was for is alive: its supervisor ran on this machine, as this node.
func (e *Sessions) Died(session int64) { e.before.died(session) }

// Wait returns when no goroutine runs in the background any more.
func (e *Sessions) Wait() { e.closing.Wait() }

// Open establishes a session, registers the node, and calls serve with it. It keeps the lease extended for as long as
// serve runs. The context of serve ends when the session cannot be trusted for long any more. Then serve must end its
// programs before Ended is closed, and returns nil only when none of their processes is alive: then, and only then, Open
// closes the session, which gives back all its locks.
func (e *Sessions) Open(ctx context.Context, serve func(context.Context, *Session) error) error {
	cfg := e.cfg
	cfg.Auth = e.shown()
	return e.open(ctx, newSession(&cfg), func(*dialer) {}, serve)
}

func newSession(cfg *Config) *Session {
	s := &Session{
		cfg: cfg, log: cfg.Logger, link: newLink(cfg.Now), Lease: newLease(cfg.Now, cfg.Lease), Self: newSelf(cfg),
		rollbacks: new(rollbacks), seen: new(leasesSeen), before: new(overSessions),
	}
	s.beats = beats{s: s, watched: map[beatOf]*beat{}, added: make(chan struct{}, 1)}
	s.client = &client{acl: ACL(*cfg), link: &s.link, lease: &s.Lease, turns: make(chan struct{}, cmp.Or(cfg.MostInTurn, mostInTurn))}
	return s
}

func (e *Sessions) open(ctx context.Context, s *Session, prepare func(*dialer), serve func(context.Context, *Session) error) error {
	serving, kill := context.WithCancelCause(ctx)
	defer kill(nil)
	s.rollbacks, s.seen, s.before = &e.rollbacks, &e.seen, &e.before
	defer func() { e.before.add(s.ID()) }()
	s.dialer = newDialer(ctx, s.cfg, s.greeted)
	s.Lease.kill, s.Lease.hangUp = kill, s.dialer.shutdown
	prepare(s.dialer)
	defer s.dialer.shutdown()

	carried := s.ID() != 0 // the session is open, with the rest of its lease
	conn, _, err := zk.Connect(s.cfg.Servers, sessionTimeout(s.cfg.Lease), zk.WithDialer(s.dialer.open), zk.WithHostProvider(s.dialer),
		zk.WithEventCallback(s.noticed), zk.WithLogger(quiet{s.log}), zk.WithLogInfo(false), zk.WithMaxConnBufferSize(128<<10))
	if err != nil {
		return fmt.Errorf("connect to ZooKeeper: %w", err)
	}
	s.conn = conn
	if !carried {
		err = s.establish(serving)
		if err == nil && !e.keeps.Load() {
			err = s.reconnect(serving)
			e.keeps.Store(err == nil)
		}
	}
	if err == nil {
		err = s.serveWithHeartbeat(serving, serve)
		// Else our guardians may have closed it.
		if why := context.Cause(serving); s.forgotten() && (errors.Is(why, ErrExpired) || errors.Is(why, ErrLeaseEnding)) {
			e.rollbacks.forgotten()
		}
		if err != nil {
			s.Expire(err) // P2: programs that may be alive keep their lock, until the session ends by itself
			e.discard(conn)
			return err
		}
	}
	if cause := context.Cause(serving); errors.Is(cause, ErrLeaseEnding) {
		s.Expire(cause) // no server would get a proper close
	}
	if over := s.Over(); over != nil {
		e.discard(conn)
		e.closeOld(ctx, s)
		if errors.Is(err, ErrForgets) {
			return err
		}
		return over
	}
	conn.Close()
	if cause := context.Cause(serving); err == nil && errors.Is(cause, ErrBeatGone) {
		return cause
	}
	return err
}

// discard ends a client whose session is over: the client needs a second to notice, and the next session can open in that time.
func (e *Sessions) discard(conn *zk.Conn) { e.closing.Go(conn.Close) }

// closeOld closes a session that ended badly as soon as a server can be reached, so that nobody has to wait for it to
// expire. All programs of the session are dead.
func (e *Sessions) closeOld(ctx context.Context, s *Session) {
	ticket, died := s.Ticket(), time.Now()
	releases := slices.Collect(maps.Values(s.locks.all()))
	if ticket.Session == 0 {
		return
	}
	e.closing.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
		defer cancel()
		if err := ticket.Close(ctx, e.cfg.plain(), releases, EndedBy(died), true); err != nil {
			s.log.Debug("previous session not closed", "session", SessionName(ticket.Session), "error", err)
		}
	})
}

// serveWithHeartbeat runs serve, the heartbeat, the lease's timer and the watch of what nodes says, and returns when all have ended.
func (s *Session) serveWithHeartbeat(serving context.Context, serve func(context.Context, *Session) error) error {
	beating, stop := context.WithCancel(context.WithoutCancel(serving))
	var wg sync.WaitGroup
	wg.Go(func() { s.beat(beating) })
	wg.Go(func() { s.watchLongest(beating) })
	wg.Go(func() { s.beats.keep(beating) })
	wg.Go(func() {
		s.Lease.watch(beating, func(left time.Duration) {
			s.log.Warn("ZooKeeper acknowledges nothing, the lease is ending",
				"left", left.Round(time.Millisecond), "error", s.unacknowledged())
			s.Stop(ErrLeaseEnding)
		})
	})
	err := serve(serving, s)
	stop()
	wg.Wait()
	return err
}

// establish waits for a session and registers the node, which gives the first lease.
func (s *Session) establish(ctx context.Context) error {
	complain := time.NewTimer(min(stallLimit(s.cfg.Lease)+2*nudged, 2*time.Second)) // a silent server is understood by then
	defer complain.Stop()
	for {
		ready := s.Resumed()
		if s.ID() != 0 {
			break
		}
		select {
		case <-ready:
		case <-complain.C:
			s.log.Warn("no ZooKeeper server reachable, still trying: no program is started on this node until one answers",
				"servers", s.cfg.Servers, "error", s.dialer.hosts.trouble())
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

// ErrForgets says that the servers do not keep sessions.
var ErrForgets = errors.New("this is no ZooKeeper that can be used: a session does not outlast its connection")

// reconnect finds out whether the servers keep a session. One that does not hands out another at each reconnect, and so the lock of the
// one before ends while its client believes in it (https://github.com/ClickHouse/ClickHouse/issues/116690).
func (s *Session) reconnect(ctx context.Context) error {
	resumed := s.Resumed()
	s.dialer.kick()
	select {
	case <-resumed:
		return nil
	case <-s.Ended(): // serving ends with it
	case <-ctx.Done():
	}
	if other, ok := errors.AsType[otherSession](s.Over()); ok {
		return fmt.Errorf("%w: %w", ErrForgets, other)
	}
	return context.Cause(ctx)
}

// Newest is the newest change of ZooKeeper's data that this session has seen.
func (s *Session) Newest() int64 { return s.dialer.seen.Load() }

// HasService reports whether there is anything of a service.
func (s *Session) HasService(ctx context.Context, service string) (bool, error) {
	v, err := s.exists(ctx, Paths{Root: s.cfg.Root, Service: service}.Dir())
	return v.exists, err
}

// outgrowing is how many writes are under way at once.
const outgrowing = 64

// Outgrow writes until the next claim has a greater token than this one. A leader's epoch is the upper half of it, and grows with each
// election alone.
func (s *Session) Outgrow(ctx context.Context, token int64) error {
	path := NodesDir(s.cfg.Root) + "/" + s.cfg.Node.Node
	for s.Newest() < token {
		if behind := token>>32 - s.Newest()>>32; behind > 0 {
			return fmt.Errorf("ZooKeeper has an older copy of its data, and this node has seen the token %d, "+
				"%d elections of a leader later: restart its leader so often", token, behind)
		}
		var wg sync.WaitGroup
		var failed atomic.Pointer[error]
		for range min(outgrowing, token-s.Newest()) {
			wg.Go(func() {
				if err := s.set(ctx, path, s.Self.data(), -1); err != nil {
					failed.Store(&err)
				}
			})
		}
		wg.Wait()
		if err := failed.Load(); err != nil {
			return fmt.Errorf("write to ZooKeeper, so that its counter grows: %w", *err)
		}
	}
	return nil
}

// watchSilence gives up a session that has no lease yet and gets no answer: after a loss of data the servers hang up for ever on a
// client that has seen more than they have.
func (s *Session) watchSilence(ctx context.Context) {
	s.answered()
	look := time.NewTicker(s.LeaseLength() / 2)
	defer look.Stop()
	for {
		select {
		case <-look.C:
		case <-ctx.Done():
			return
		}
		if s.silence() > 2*s.LeaseLength() {
			s.Expire(ErrExpired)
			return
		}
	}
}

// Stop tells serve to end; the session is closed as soon as it has.
func (s *Session) Stop(why error) { s.Lease.kill(why) }
