package replica

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"understudy/supervisor/config"
	"understudy/supervisor/host"
	"understudy/supervisor/unit"
	"understudy/supervisor/wait"
)

// Config configures a copy.
type Config struct {
	Service, Node string
	Unit          *unit.Unit
	Commands      *unit.Commands
	Store         func(dir string) Store
	Logger        hclog.Logger // names the service
	News          func()       // is told when what Shown returns has changed
}

// Copy is this node's copy of a replicated program. Its methods may be called by any goroutine.
type Copy struct {
	cfg  Config
	log  hclog.Logger
	look chan struct{} // capacity 1: the follower has to be looked at

	lending        // its tree, and what a term has of it
	data    data   // what is known of its data
	orders  orders // of operators
	mends   mender

	mu        sync.Mutex // guards the fields below, and is taken before the locks of these parts
	conf      config.Service
	active    Active
	turn      context.CancelFunc // ends turned
	turned    context.Context    // ends when active changes
	newest    Active             // the newest that was known
	following Active             // whom the programs that run were told to follow
	run       *unit.Run          // nil: it does not run as a follower
	halted    string             // why it must not run as a follower; "": it may
	shown     Shown
	outside   outside
	asked     time.Time // when it said last that it has the primary's data
}

// Starting is why a warm program that is being started cannot be promoted yet.
const Starting = "its program is starting"

// Shown is what is known of a follower.
type Shown struct {
	Role     CopyRole
	Why      string // it is not fit; "": as far as is known it is
	Ill      string // what its health check says; "": it is well
	Era      int64
	Followed int64
	Toward   int64
	Source   Source
	Position *uint64 // the newest, while it follows
	All      bool    // it had every write that was acknowledged then
}

// Follows tells why nobody should read from this copy; "": it follows the primary, and had its data when it was asked last. That is so
// while ZooKeeper is gone, too. lag, unless it is nil, is how far it may be behind the primary's newest heartbeat; without one of late that
// is not known. all: it had to have every write that was acknowledged.
func (c *Copy) Follows(lag *uint64, all bool) (why string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s, late := c.shown, c.conf.Replicated.Interval+2*c.conf.Replicated.Timeout
	kept, _ := c.data.known()
	lead := c.outside.lead
	switch {
	case c.isHeld():
		return errPromoted.Error()
	case c.run == nil || wait.Closed(c.run.Done()):
		return errNotRuns.Error()
	case s.Role != Follower || s.Why != "" || s.Ill != "":
		return cmp.Or(s.Ill, s.Why, "it does not say that it is a follower")
	case c.active.Node == "":
		return "no primary is known"
	case !kept.has(c.active) || s.Position == nil:
		return "it does not have the primary's data yet"
	case time.Since(c.asked) > late:
		return fmt.Sprintf("it has not reported its position for %v", time.Since(c.asked).Round(time.Second))
	case all && !s.All:
		return "it does not say that it has every acknowledged write"
	case lag != nil && (lead.of != c.active || time.Since(lead.seen) > late):
		return "it is not known how far the primary's data goes"
	case lag != nil && lead.position > *s.Position && lead.position-*s.Position > *lag:
		return fmt.Sprintf("it is %d behind the primary", lead.position-*s.Position)
	}
	return ""
}

var (
	errHeld    = errors.New("it is about to be promoted")
	errPrimary = errors.New("it reports that it is the primary, but this node does not hold the lock")
	errNotRuns = errors.New("its program does not run")
	errStale   = errors.New("its tree has ended")
	errUnread  = errors.New("that is being read")
	errHalted  = errors.New("it must not run here")
	errClosed  = errors.New("this supervisor ends")
)

// New makes a copy, which Keep runs.
func New(cfg Config, conf config.Service) *Copy {
	c := &Copy{
		cfg: cfg, log: cfg.Logger, conf: conf, look: make(chan struct{}, 1),
		lending: lending{service: cfg.Service, commands: cfg.Commands, log: cfg.Logger, poke: make(chan struct{}, 1)},
		shown:   Shown{Role: Unknown, Why: errNotRuns.Error()},
	}
	c.made = make(chan struct{})
	c.talk, c.hush = context.WithCancel(context.Background())
	c.turned, c.turn = context.WithCancel(context.Background())
	c.mends.c = c
	c.data.node, c.data.service, c.data.unread = cfg.Node, cfg.Service, errUnread
	c.data.news = func() { c.cfg.News() }
	c.data.store = func() Store { return cfg.Store(c.config().Replicated.StateDir) }
	if conf.Warm != nil {
		c.data.unread = nil // it has no data
		c.halted = "it is not known yet whether it may run here"
	}
	return c
}

func (c *Copy) config() config.Service {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.conf
}

// Configure puts a config in force.
func (c *Copy) Configure(conf config.Service) {
	c.mu.Lock()
	was, now := c.conf.Replicated, conf.Replicated
	c.conf = conf
	if !slices.Equal(was.Prepare, now.Prepare) || !slices.Equal(was.Reclone, now.Reclone) { // the one that runs may hang
		c.turns()
	}
	c.mu.Unlock()
	wait.Poke(c.poke)
}

// Learn tells which copy is promoted; the zero value: none that is known.
func (c *Copy) Learn(active Active) {
	c.mu.Lock()
	changed := c.active != active
	if changed {
		c.active = active
		c.turns()
		if now := c.orders.current(); now != nil && now.do == DoReclone {
			c.orders.answer(errTurned)
		}
		if active.Node != "" && active != c.newest { // what was tried was for another one
			c.newest, c.mends.mending = active, mending{}
		}
	}
	c.mu.Unlock()
	if changed {
		wait.Poke(c.look)
	}
}

// turns ends what prepares the copy: it begins again. The caller holds mu.
func (c *Copy) turns() {
	c.turn()
	c.turned, c.turn = context.WithCancel(context.Background())
}

// Shown is what is known of the follower.
func (c *Copy) Shown() Shown {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.shown
	kept, _ := c.data.known()
	s.Era, s.Followed, s.Toward, s.Source = kept.Era, kept.Followed, kept.Toward, kept.Source
	return s
}

// show changes what is shown.
func (c *Copy) show(change func(*Shown)) {
	c.mu.Lock()
	was := c.shown
	change(&c.shown)
	changed := c.shown.Role != was.Role || c.shown.Why != was.Why || c.shown.Ill != was.Ill
	c.mu.Unlock()
	if changed {
		c.cfg.News()
	}
}

// Ready reports whether a warm program runs as a follower and could be promoted at once, and whether it is being started for that.
func (c *Copy) Ready() (ready, starting bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.isHeld() || c.run == nil || wait.Closed(c.run.Done()) {
		return false, false
	}
	up := wait.Closed(c.run.Ready())
	return up && (len(c.conf.Replicated.Role) == 0 || c.shown.Role == Follower), !up
}

// stands says that a warm program is ready to be promoted, as far as nobody asks it.
func (c *Copy) stands(conf config.Service) {
	if conf.Warm == nil {
		return
	}
	if len(conf.Warm.Role) == 0 {
		c.show(func(s *Shown) { s.Role, s.Why = Follower, "" })
	}
	wait.Poke(c.look)
	c.cfg.News()
}

// Halt says why the program must not run as a follower either; "": it may.
func (c *Copy) Halt(why string) {
	c.mu.Lock()
	changed := c.halted != why
	c.halted = why
	c.mu.Unlock()
	if changed {
		wait.Poke(c.poke)
	}
}

// Halted is why it must not run; "": it may.
func (c *Copy) Halted() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.halted
}

// Hold gives the tree to a term, with the programs that run in it. Whatever it returns, nothing is started in the tree any more, and the
// term has to end it, and then to call Free.
func (c *Copy) Hold(ctx context.Context, tree host.Tree) (*unit.CarriedRun, error) {
	c.mu.Lock()
	programs, err := c.lend(tree)
	if err == nil {
		c.orders.answer(errPromoted)
	}
	c.mu.Unlock()
	if err != nil {
		return nil, err
	}
	c.tells.Wait()
	wait.Poke(c.poke)
	select {
	case got := <-programs:
		return got.run, got.err
	case <-ctx.Done():
		go func() {
			if got := <-programs; got.run != nil {
				got.run.Discard()
			}
		}()
		return nil, context.Cause(ctx)
	}
}

// asking are the commands of the copy as it runs now. The caller holds mu.
func (c *Copy) asking(active Active) asking {
	return asking{unit: c.cfg.Unit, tree: c.lending.now().tree, conf: c.conf, env: active.Environ(false), token: active.Token}
}
