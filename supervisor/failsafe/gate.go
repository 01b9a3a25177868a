package failsafe

import (
	"context"
	"time"

	"github.com/hashicorp/go-hclog"

	"understudy/election"
	"understudy/fencing/agent"
	"understudy/supervisor/wait"
)

// Term is what runs, or may be started, between a claim of a service's lock and the proof that nothing of it is alive. Terms are
// compared: a term is the same value from Enter to Leave.
type Term interface {
	Name() string // of its service
	// End asks for its end, and returns at once.
	End(why error)
	// Killer looks up what runs of it now, and returns a function that kills that; nil if nothing runs.
	Killer() func(context.Context)
}

// guardians are told until when programs may run.
type guardians interface {
	Extend(end time.Duration) error
}

// Config is what a Gate works with.
type Config struct {
	Session   *election.Session
	Guardians guardians
	Node      string        // this one's name
	Agent     *agent.Method // asks other nodes; nil: nobody can be asked
	Promises  *Promises     // this node's own
	Now       func() time.Duration
	Log       hclog.Logger
	Show      func(end time.Duration, held bool) // of the lease: held is by promises
}

// Gate says until when the programs of one session may run: as long as ZooKeeper backs the lease; those of a failsafe service also as
// long as every node that could start it has promised not to.
//
// P1, P3: the guardians know one deadline for all programs. So it is the earliest deadline of all terms, and a term may begin to start
// programs only while the deadline is ZooKeeper's own.
type Gate struct {
	cfg Config

	mu    mutex                   // guards the fields below; its owner may wait for the guardians
	told  time.Duration           // the furthest deadline that the guardians know
	terms map[Term]*otherPromises // that may run
	held  bool                    // ZooKeeper's lease is over, or nearly, and promises are in its place
}

// NewGate is the gate of a session, before anything runs in it.
func NewGate(cfg Config) *Gate {
	return &Gate{cfg: cfg, mu: newMutex(), terms: map[Term]*otherPromises{}}
}

// Extend tells the guardians how far ZooKeeper's newest acknowledgement extends the lease.
func (g *Gate) Extend(end time.Duration) error {
	g.mu.lock()
	defer g.mu.unlock()
	return g.tell(g.covered(end))
}

// covered cuts a deadline to the promises of a previous session: as long as a term relies on those, this one's lease is none for it. The
// caller holds mu.
func (g *Gate) covered(end time.Duration) time.Duration {
	for _, o := range g.terms {
		if o.cover > 0 {
			end = min(end, o.cover)
		}
	}
	return end
}

// tell sends a deadline. The caller holds mu, so that no term is overlooked.
func (g *Gate) tell(end time.Duration) error {
	g.told = max(g.told, end)
	return g.cfg.Guardians.Extend(end)
}

// Plain tells whether the guardians know no deadline but ZooKeeper's own. Only the caller of TryPlain may ask, before it unlocks.
func (g *Gate) Plain() bool {
	backed := g.cfg.Session.Backed()
	return g.told <= backed && g.covered(backed) == backed
}

// TryPlain keeps the deadline as it is until unlock is called. It reports false, and changes nothing, when the guardians know
// another deadline than ZooKeeper's own, or are being told one. P3: the next image of this process does not know of such a deadline,
// and would start programs under it that nobody was asked about. It does not wait: the caller may hold a lock that mu's owner
// waits for.
func (g *Gate) TryPlain() (unlock func(), ok bool) {
	if !g.mu.tryLock() {
		return nil, false
	}
	if !g.Plain() {
		g.mu.unlock()
		return nil, false
	}
	return g.mu.unlock, true
}

// oncePlain calls do as soon as the deadline is ZooKeeper's own; nobody can change that meanwhile. It reports false if ctx ended
// first.
func (g *Gate) oncePlain(ctx context.Context, do func()) bool {
	for {
		g.mu.lock()
		plain := g.Plain()
		if plain {
			do()
		}
		g.mu.unlock()
		if plain {
			return true
		}
		if !wait.For(ctx, g.cfg.Session.LeaseLength()/50) {
			return false
		}
	}
}

// Enter lets a term start programs: from then on the deadline goes beyond ZooKeeper's own only by promises that cover this term, too. It
// reports false if ctx ended first.
func (g *Gate) Enter(ctx context.Context, t Term, claim *election.Claim) bool {
	return g.oncePlain(ctx, func() { g.terms[t] = newOtherPromises(claim) })
}

// Expect counts terms whose programs run already, and which are about to Enter: no promise covers them yet.
func (g *Gate) Expect(terms []Term) {
	g.mu.lock()
	defer g.mu.unlock()
	for _, t := range terms {
		g.terms[t] = newOtherPromises(nil)
	}
}

// Leave says that nothing of a term is alive, and that nothing of it can be started.
func (g *Gate) Leave(t Term) {
	g.mu.lock()
	defer g.mu.unlock()
	o := g.terms[t]
	delete(g.terms, t)
	if o != nil && o.cover > 0 {
		g.uncover()
	}
}

// mutex is a lock with a try. It is a channel because testing/synctest counts a goroutine that waits for a channel as
// idle, but not one that waits for a sync.Mutex: virtual time would stand still while the guardians are told.
type mutex chan struct{}

func newMutex() mutex { return make(mutex, 1) }

func (m mutex) lock()   { m <- struct{}{} }
func (m mutex) unlock() { <-m }

func (m mutex) tryLock() bool {
	select {
	case m <- struct{}{}:
		return true
	default:
		return false
	}
}
