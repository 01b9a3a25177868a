package election

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
)

// Failsafe is what a breadcrumb says whose writer may outlast a loss of the whole ensemble: it goes on only while each of the
// members has promised not to start the service. Without any member it does not: nobody could tell it a loss of ZooKeeper from
// its own isolation.
type Failsafe struct {
	Members []Peer `json:"members"`
}

// Peer is a node that is asked for a promise, and where.
type Peer struct {
	Node    string `json:"node"`
	Machine string `json:"machine,omitempty"`
	Agent   string `json:"agent,omitempty"`
}

// Binds tells whether it says anything.
func (f *Failsafe) Binds() bool { return f != nil && len(f.Members) > 0 }

// Lists tells whether a node is one of the members: then the writer of the breadcrumb could not go on without its promise.
func (f *Failsafe) Lists(p Peer) bool {
	return p.Machine != "" && p.Agent != "" && slices.Contains(f.Members, p)
}

// PromiseLength is for how long a promise binds who gives it, from when it is asked.
func PromiseLength(session time.Duration) time.Duration { return session }

// CoverLength is how far a promise carries who has asked for it, from when the question was sent. P1: it is shorter by what
// clocks may differ in their rates, and by what the killing itself, or a watchdog in its place, may take.
func CoverLength(session time.Duration) time.Duration { return session - session/20 }

// AskAfter is how old the newest acknowledged write has to be before others are asked for promises.
func AskAfter(session time.Duration) time.Duration { return LeaseLength(session) / 2 }

// GoneAfter is how old the newest acknowledged write is when a node says that it sees no ensemble: three heartbeats.
func GoneAfter(session time.Duration) time.Duration { return session / 4 }

// StopEarly is how long before a lease's end a child is asked to stop, and KillEarly how long before it is killed, where the
// lease of others may go on.
func StopEarly(session time.Duration) time.Duration { return stopEarly(session) }

// KillEarly leaves the time for a proof.
func KillEarly(session time.Duration) time.Duration { return session / 30 }

// Hold has the session count as alive until then although nothing is acknowledged: others have promised not to start what
// runs under it. It reports false when it comes too late. P3: an ended lease is never revived, and one that is ending
// neither; nothing prolongs a session that is known to be over.
func (s *Session) Hold(until time.Duration) bool {
	now := s.cfg.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over != nil || s.ending || now >= max(s.end, s.held) {
		return false
	}
	s.held = max(s.held, until)
	return true
}

// Backed is when the lease ends that ZooKeeper itself backs.
func (s *Session) Backed() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.end
}

// Acked is when the newest acknowledged write was sent.
func (s *Session) Acked() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.acked
}

// Sighted tells whether a server grants a new session, which takes a quorum: then there is an ensemble, though it may not take
// us back. One that has lost its data hangs up on every client that has seen more, for ever.
func (s *Session) Sighted(ctx context.Context) bool {
	t := s.Ticket()
	t.Session, t.Password = 0, make([]byte, 16)
	dial := dialing(s.cfg.Dial, t.TLS)
	for _, server := range t.Servers {
		if t.closeAt(ctx, dial, server, nil, true) == nil {
			return true
		}
	}
	return false
}

// roll is whom the writer of a breadcrumb counts on.
type roll struct {
	mu     sync.Mutex // guards what follows
	wanted *Failsafe  // what the breadcrumb is to say
	asked  []Peer     // all that it may say now
	acked  bool       // a list has been acknowledged, and it cannot say by now that there is nobody
	stir   chan zk.Event
}

func newRoll() *roll { return &roll{stir: make(chan zk.Event, 1)} }

// Enlist has the breadcrumb list these members. From now on, whatever becomes of the writing, each of them is counted on.
// P1: those of former lists are until this one is acknowledged. Once the breadcrumb may say that there is nobody, whoever finds
// it relies on our not going on.
func (c *Claim) Enlist(members []Peer) {
	r := c.roll
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wanted = &Failsafe{Members: slices.Clone(members)}
	r.acked = r.acked && len(members) > 0
	for _, p := range members {
		if !slices.Contains(r.asked, p) {
			r.asked = append(r.asked, p)
		}
	}
	select {
	case r.stir <- zk.Event{}:
	default:
	}
}

// Counted is everybody that the breadcrumb may list. It reports false while no list has been acknowledged that names anybody.
func (c *Claim) Counted() ([]Peer, bool) {
	c.roll.mu.Lock()
	defer c.roll.mu.Unlock()
	return slices.Clone(c.roll.asked), c.roll.acked
}

// Session is the timeout of the session, as the breadcrumb tells it.
func (c *Claim) Session() time.Duration { return time.Duration(c.crumb.SessionMs) * time.Millisecond }

// enroll writes the list that is wanted, unless the breadcrumb says it.
func (c *Claim) enroll(ctx context.Context, again *pacing) error {
	c.roll.mu.Lock()
	wanted := c.roll.wanted
	c.roll.mu.Unlock()
	if wanted == nil || wanted == c.listed {
		return nil
	}
	c.crumb.Failsafe = wanted
	failed, err := c.rewrite(ctx)
	switch {
	case errors.Is(err, zk.ErrNoAuth):
		return fmt.Errorf("write the breadcrumb: %w", err)
	case err != nil: // unknown, or it shows in the read that follows
		if err := again.wait(ctx, c.s, err); err != nil {
			return err
		}
		if failed == 0 {
			if err := c.renumber(ctx); err != nil {
				return err
			}
		}
		c.nudge()
		return nil
	}
	c.version++
	c.listed = wanted
	c.roll.mu.Lock()
	defer c.roll.mu.Unlock()
	c.roll.acked = len(wanted.Members) > 0 && len(c.roll.wanted.Members) > 0
	if c.roll.wanted == wanted {
		c.roll.asked = slices.Clone(wanted.Members)
	}
	return nil
}

func (c *Claim) nudge() {
	select {
	case c.roll.stir <- zk.Event{}:
	default:
	}
}

// Peers tells who else stands for the service, and each change of that, until ctx or the session ends.
func (c *Candidate) Peers(ctx context.Context, tell func([]Peer)) error {
	for again := (pacing{}); ; {
		peers, changed, err := c.peers(ctx)
		if err == nil {
			tell(peers)
			err = c.s.await(ctx, changed)
		} else if unknown(err) {
			err = again.wait(ctx, c.s, err)
		}
		if err != nil {
			return err
		}
	}
}

func (c *Candidate) peers(ctx context.Context) (peers []Peer, changed <-chan zk.Event, err error) {
	type listing struct {
		names   []string
		changed <-chan zk.Event
	}
	l, err := call(ctx, c.s, func() (listing, error) {
		names, _, changed, err := c.s.conn.ChildrenW(c.paths.Members())
		return listing{names, changed}, err
	})
	if err != nil {
		return nil, nil, wrap("read the members", err)
	}
	slices.Sort(l.names)
	for _, name := range l.names {
		if name == c.s.cfg.Node.Node {
			continue
		}
		v, err := c.s.read(ctx, c.paths.Members()+"/"+name)
		if err != nil {
			return nil, nil, wrap("read a member", err)
		}
		if !v.exists {
			continue // the watch has told of that
		}
		m, err := decode[Member](v.data)
		if err != nil {
			m = Member{} // who cannot be asked is silent
		}
		peers = append(peers, Peer{Node: name, Machine: m.Machine, Agent: m.Agent})
	}
	return peers, l.changed, nil
}
