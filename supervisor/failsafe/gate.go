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
// compared: one is the same from Enter to Leave.
type Term interface {
	Name() string // of its service
	// End asks for its end, and returns at once.
	End(why error)
	// Killer looks up what runs of it now, and returns what kills that; nil when there is nothing.
	Killer() func(context.Context)
}

// Guardians are told how long what runs may run.
type Guardians interface {
	Extend(end time.Duration) error
	// Shorten returns when both guardians know the end, and have fitted the watchdog to the session.
	Shorten(ctx context.Context, end, session time.Duration) error
}

// Config is what a Gate works with.
type Config struct {
	Session   *election.Session
	Guardians Guardians
	Node      string        // this one's name
	Agent     *agent.Method // asks other nodes; nil: nobody can be asked
	Promises  *Promises     // this node's own
	Now       func() time.Duration
	Log       hclog.Logger
	Show      func(end time.Duration, held bool) // of the lease: held is by promises
}

// Gate says how long what runs in one session may run: for as long as ZooKeeper backs the lease; or, of a failsafe service, for as
// long as every node has promised not to start it that could.
//
// P1, P3: the guardians know one deadline for all that runs. So it is the earliest of those of all terms, and a term may begin to
// start programs only while the deadline is ZooKeeper's own.
type Gate struct {
	cfg  Config
	wake chan struct{} // has a token when Keep has to look at once

	mu    mutex                   // guards what follows; its owner may wait for the guardians
	told  time.Duration           // the furthest deadline that the guardians know
	terms map[Term]*otherPromises // that may run
	held  bool                    // ZooKeeper's lease is over, or nearly, and promises are in its place
}

// NewGate is the gate of a session, before anything runs in it.
func NewGate(cfg Config) *Gate {
	return &Gate{cfg: cfg, mu: newMutex(), terms: map[Term]*otherPromises{}, wake: make(chan struct{}, 1)}
}

// Extend takes what ZooKeeper acknowledges to the guardians. P3: what was computed before the session became shorter is too long.
func (g *Gate) Extend(end time.Duration) error {
	g.mu.lock()
	defer g.mu.unlock()
	return g.tell(min(end, g.cfg.Session.Backed()))
}

// Shorten takes a lease that ZooKeeper has made shorter to the guardians, and returns when both know of it.
func (g *Gate) Shorten(ctx context.Context) error {
	if err := g.mu.lockUntil(ctx); err != nil {
		return err
	}
	defer g.mu.unlock()
	session, end := g.cfg.Session.Timeout(), g.limit()
	if g.told > 0 {
		end = min(end, g.told)
	}
	end = max(end, 1) // P3: a session that is over has none left, and 0 would say that none has begun
	g.told = end
	wait.Poke(g.wake) // P7: Keep sleeps by the longer session
	return g.cfg.Guardians.Shorten(ctx, end, session)
}

// limit is the latest deadline that all terms are good for: ZooKeeper's own, or one by promises. mu is held.
func (g *Gate) limit() time.Duration {
	backed := g.cfg.Session.Backed()
	if !g.held {
		return backed
	}
	now, latest := g.cfg.Now(), max(g.told, backed)
	for _, p := range g.terms {
		latest = min(latest, max(backed, p.reach(now)))
	}
	return latest
}

// tell sends a deadline. mu is held, so that no term is overlooked.
func (g *Gate) tell(end time.Duration) error {
	g.told = max(g.told, end)
	return g.cfg.Guardians.Extend(end)
}

// Plain tells whether the guardians know no deadline but ZooKeeper's own. It is for the caller of TryPlain, until its unlock.
func (g *Gate) Plain() bool { return g.told <= g.cfg.Session.Backed() }

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

// oncePlain does something as soon as the deadline is ZooKeeper's own, while nobody can change that. It reports false when ctx
// ended first.
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
		if !wait.For(ctx, g.cfg.Session.Timeout()/100) {
			return false
		}
	}
}

// Enter lets a term start programs: the deadline is ZooKeeper's own then, and goes beyond it only by promises that are about this
// term too. It reports false when ctx ended first.
func (g *Gate) Enter(ctx context.Context, t Term, claim *election.Claim) bool {
	return g.oncePlain(ctx, func() { g.terms[t] = newOtherPromises(claim) })
}

// Expect counts terms that run already, and are about to Enter: nothing is promised about them yet.
func (g *Gate) Expect(terms []Term) {
	g.mu.lock()
	defer g.mu.unlock()
	for _, t := range terms {
		g.terms[t] = newOtherPromises(nil)
	}
}

// Leave says that nothing of a term is alive, nor can be started.
func (g *Gate) Leave(t Term) {
	g.mu.lock()
	defer g.mu.unlock()
	delete(g.terms, t)
}

// mutex is a mutex that one need not wait for. A channel, as those who wait for one are idle to testing/synctest, and those who
// wait for a sync.Mutex are not: virtual time would stand still while the guardians are told.
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

func (m mutex) lockUntil(ctx context.Context) error {
	select {
	case m <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
