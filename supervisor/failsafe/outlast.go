package failsafe

import (
	"errors"
	"time"

	"understudy/election"
)

// A session that runs out while promises hold does not end a term whose programs they cover. The programs run on under the deadline that
// the guardians know, which nobody extends any more, and the next session takes the lock again before that. Until it has, the term's lease
// there ends with these promises, too.

// Outlasts tells until when a term may run on although its session has expired; 0: it may not.
func (g *Gate) Outlasts(t Term) time.Duration {
	if !errors.Is(g.cfg.Session.Over(), election.ErrExpired) {
		return 0
	}
	g.mu.lock()
	defer g.mu.unlock()
	o, now := g.terms[t], g.cfg.Now()
	if !g.held || o == nil || o.ended || o.killed || o.reach(now) < g.told || !reclaimable(g.told-now, g.cfg.Session.LeaseLength()) {
		return 0
	}
	return g.told
}

// reclaimable reports whether so much time is enough to take a lock again, and otherwise to prove a death.
func reclaimable(left, lease time.Duration) bool {
	return left > election.StopEarly(lease)+election.KillEarly(lease)
}

// Cover counts a term whose session has expired, and which goes on by promises until then.
func (g *Gate) Cover(t Term, until time.Duration) {
	g.mu.lock()
	defer g.mu.unlock()
	o := newOtherPromises(nil)
	if reclaimable(until-g.cfg.Now(), g.cfg.Session.LeaseLength()) {
		o.cover = until
	} // else its lease is the previous one, and it cannot move to this one's
	g.terms[t] = o
}

// Covered is until when a term has to have its lock again, or to be proved dead, and a deadline by which to give that up; 0: it cannot.
func (g *Gate) Covered(t Term) (until time.Duration) {
	g.mu.lock()
	defer g.mu.unlock()
	o := g.terms[t]
	if o == nil || o.cover == 0 {
		return 0
	}
	return o.cover - election.StopEarly(g.cfg.Session.LeaseLength())
}

// Reclaimed notes that a term has its lock again: from now on ZooKeeper backs its lease.
func (g *Gate) Reclaimed(t Term, claim *election.Claim) {
	g.mu.lock()
	defer g.mu.unlock()
	g.terms[t] = newOtherPromises(claim)
	g.uncover()
}

// uncover tells the guardians of the lease that ZooKeeper backs, once no term's promises are sooner over. The caller holds mu.
func (g *Gate) uncover() {
	if g.cfg.Session.Over() != nil {
		return
	}
	if err := g.tell(g.covered(g.cfg.Session.Backed())); err != nil {
		g.cfg.Log.Warn("cannot extend the lease at the guardians", "error", err)
	}
}
