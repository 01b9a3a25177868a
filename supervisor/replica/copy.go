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
	poke chan struct{} // capacity 1: what Keep works with has changed
	look chan struct{} // capacity 1: the follower has to be looked at

	saving sync.Mutex     // held, and taken before mu, while a state is kept
	tells  sync.WaitGroup // calls of Tell that ask the copy; none begins while it is held

	mu        sync.Mutex // guards the fields below
	conf      config.Service
	active    Active
	tree      host.Tree     // nil: there is none
	lease     *unit.Lease   // the tree's own, while no term has it
	made      chan struct{} // closed when there is a tree
	held      bool          // a term has the tree
	hush      func()        // ends the commands of Tell
	talk      context.Context
	turn      context.CancelFunc // ends turned
	turned    context.Context    // ends when active changes
	want      *holdRequest       // a term waits for the programs
	newest    Active             // the newest that was known
	mending   mending
	mends     bool             // prepare or reclone runs
	following Active           // whom the programs that run were told to follow
	run       *unit.Run        // nil: it does not run as a follower
	resume    *unit.CarriedRun // the programs that a term has given back
	closed    bool             // this supervisor ends: no term gets any, or may give any back
	halted    string           // why it must not run as a follower; "": it may
	shown     Shown
	asked     time.Time // when it said last that it has the primary's data
	state     state
	unread    error // why the state cannot be read; then nothing is known of the data
	outside   outside
	order     *order // of an operator, until it is done; nil: there is none
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
	lead := c.outside.lead
	switch {
	case c.held:
		return errPromoted.Error()
	case c.run == nil || wait.Closed(c.run.Done()):
		return errNotRuns.Error()
	case s.Role != Follower || s.Why != "" || s.Ill != "":
		return cmp.Or(s.Ill, s.Why, "it does not say that it is a follower")
	case c.active.Node == "":
		return "no primary is known"
	case !c.state.has(c.active) || s.Position == nil:
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

// holdRequest is a term's wish for the programs.
type holdRequest struct{ got chan holdResult }

type holdResult struct {
	run *unit.CarriedRun
	err error
}

var (
	errHeld    = errors.New("it is about to be promoted")
	errPrimary = errors.New("it reports that it is the primary, but this node does not hold the lock")
	errNotRuns = errors.New("its program does not run")
	errStale   = errors.New("its tree has ended")
	errUnread  = errors.New("that is being read")
	errHalted  = errors.New("it must not run here")
)

// New makes a copy, which Keep runs.
func New(cfg Config, conf config.Service) *Copy {
	c := &Copy{
		cfg: cfg, log: cfg.Logger, conf: conf, poke: make(chan struct{}, 1), look: make(chan struct{}, 1), made: make(chan struct{}),
		shown: Shown{Role: Unknown, Why: errNotRuns.Error()},
	}
	c.talk, c.hush = context.WithCancel(context.Background())
	c.turned, c.turn = context.WithCancel(context.Background())
	c.unread = errUnread
	if conf.Warm != nil {
		c.halted = "it is not known yet whether it may run here"
	}
	return c
}

// restore reads what is known of the data. It may take a while.
func (c *Copy) restore() {
	c.mu.Lock()
	store, known := c.store(), !errors.Is(c.unread, errUnread)
	if c.conf.Warm != nil { // it has no data
		c.unread, known = nil, true
	}
	c.closed = false
	c.mu.Unlock()
	if known {
		return
	}
	kept, err := load(store, c.cfg.Node, c.cfg.Service)
	if err != nil {
		c.log.Error("cannot read which primary this node's copy has followed: it is not promoted until it has followed one", "error", err)
	}
	c.mu.Lock()
	c.state, c.unread = kept, err
	c.mu.Unlock()
	c.cfg.News()
}

func (c *Copy) store() Store { return c.cfg.Store(c.conf.Replicated.StateDir) }

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
		if c.order != nil && c.order.do == DoReclone {
			c.answer(errTurned)
		}
		if active.Node != "" && active != c.newest { // what was tried was for another one
			c.newest, c.mending = active, mending{}
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
	s.Era, s.Followed, s.Toward, s.Source = c.state.Era, c.state.Followed, c.state.Toward, c.state.Source
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

// Tree is the tree that the copy runs in, once there is one that no term has.
func (c *Copy) Tree(ctx context.Context) (host.Tree, error) {
	for {
		c.mu.Lock()
		tree, made, held := c.tree, c.made, c.held
		c.mu.Unlock()
		if tree != nil && !held {
			return tree, nil
		}
		select {
		case <-made:
			if held {
				return nil, errStale // the caller has to free it first
			}
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// Ready reports whether a warm program runs as a follower and could be promoted at once, and whether it is being started for that.
func (c *Copy) Ready() (ready, starting bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held || c.run == nil || wait.Closed(c.run.Done()) {
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

// Holds reports whether a term has this tree.
func (c *Copy) Holds(tree host.Tree) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.held && c.tree == tree && !c.closed
}

// Hold gives the tree to a term, with the programs that run in it. Whatever it returns, nothing is started in the tree any more, and the
// term has to end it, and then to call Free.
func (c *Copy) Hold(ctx context.Context, tree host.Tree) (*unit.CarriedRun, error) {
	p := &holdRequest{make(chan holdResult, 1)}
	c.mu.Lock()
	switch {
	case c.held:
		c.mu.Unlock()
		return nil, errNotRuns
	case c.tree != tree:
		c.mu.Unlock()
		return nil, errStale
	}
	c.held = true
	c.hush()
	c.answer(errPromoted)
	closed := c.closed
	if !closed {
		c.want = p
	}
	c.mu.Unlock()
	c.tells.Wait()
	if closed {
		return nil, errClosed
	}
	wait.Poke(c.poke)
	select {
	case got := <-p.got:
		return got.run, got.err
	case <-ctx.Done():
		go func() {
			if got := <-p.got; got.run != nil {
				got.run.Discard()
			}
		}()
		return nil, context.Cause(ctx)
	}
}

// Free says that the tree which a term had has ended: the copy comes back as a follower in another one.
func (c *Copy) Free() {
	c.mu.Lock()
	if !c.held {
		c.mu.Unlock()
		return
	}
	c.held = false
	c.talk, c.hush = context.WithCancel(context.Background())
	lease := c.uproot()
	c.mu.Unlock()
	c.forget(lease)
	wait.Poke(c.poke)
}

// uproot forgets a tree that has ended. The caller holds mu.
func (c *Copy) uproot() (lease *unit.Lease) {
	lease, c.lease, c.tree, c.made = c.lease, nil, nil, make(chan struct{})
	if resume := c.takeResume(); resume != nil {
		resume.Discard()
	}
	return lease
}

func (c *Copy) forget(lease *unit.Lease) {
	if lease == nil {
		return
	}
	if err := lease.Finish(); err != nil {
		c.log.Debug("the lease of a copy's tree is still held", "error", err)
	}
}

// asking are the commands of the copy as it runs now. The caller holds mu.
func (c *Copy) asking(active Active) asking {
	return asking{unit: c.cfg.Unit, tree: c.tree, conf: c.conf, env: active.Environ(false), token: active.Token}
}

// keepState keeps a state for good: what it is about happens afterwards.
func (c *Copy) keepState(change func(*state)) error {
	c.saving.Lock()
	defer c.saving.Unlock()
	c.mu.Lock()
	next, store := c.state, c.store()
	c.mu.Unlock()
	change(&next)
	if err := save(store, next); err != nil {
		return fmt.Errorf("keep what the copy has followed: %w", err)
	}
	c.mu.Lock()
	changed := c.state.Followed != next.Followed || c.state.Toward != next.Toward || c.state.Source != next.Source
	c.state, c.unread = next, nil
	c.mu.Unlock()
	if changed {
		c.cfg.News()
	}
	return nil
}

// Promoting keeps, before the copy is promoted, that its data is that of this promotion.
func (c *Copy) Promoting(era, token int64) error {
	return c.keepState(func(s *state) { s.Era, s.Followed, s.Toward, s.Diverges = era, token, 0, true })
}
