package failsafe

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"understudy/election"
	"understudy/fencing/agent"
)

// Keep collects promises of other nodes, and relies on them while ZooKeeper acknowledges nothing, until ctx or the session ends.
func (g *Gate) Keep(ctx context.Context) {
	if g.cfg.Agent == nil {
		return // nobody can be asked
	}
	k := keeper{Gate: g}
	defer k.helpers.Wait()
	sess := g.cfg.Session
	for sess.Over() == nil {
		lease := sess.LeaseLength()
		now := g.cfg.Now()
		left := sess.Acked() + election.AskAfter(lease) - now
		if left > 0 {
			k.backed()
		} else {
			k.ask(ctx, now)
			k.stretch(ctx, lease)
			k.findQuorum(ctx, now, lease)
		}
		timer := time.NewTimer(max(left, lease/30))
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
		if ctx.Err() != nil {
			return
		}
	}
}

// keeper is one run of Keep.
type keeper struct {
	*Gate
	helpers sync.WaitGroup // asking, looking, killing
	look    time.Duration  // when to look for an ensemble again; guarded by mu
}

// backed notes that ZooKeeper is there.
func (k *keeper) backed() {
	k.mu.lock()
	defer k.mu.unlock()
	if k.held {
		k.held = false
		k.cfg.Log.Info("ZooKeeper answers again: failsafe is over", "session", election.SessionName(k.cfg.Session.ID()))
		k.cfg.Show(k.cfg.Session.Backed(), false)
	}
}

// ask asks those whose promise is missing or soon over, all at the same time.
func (k *keeper) ask(ctx context.Context, now time.Duration) {
	k.mu.lock()
	defer k.mu.unlock()
	for t, o := range k.terms {
		for _, p := range o.due(now) {
			o.asked[p] = true
			name, token, lease := t.Name(), o.claim.Token, o.claim.Lease()
			k.helpers.Go(func() {
				until, err := k.askOne(ctx, name, token, p, lease)
				k.mu.lock()
				defer k.mu.unlock()
				delete(o.asked, p)
				switch {
				case err == nil:
					o.until[p] = max(o.until[p], until)
					delete(o.silent, p)
				case ctx.Err() == nil && !o.silent[p]:
					o.silent[p] = true
					k.cfg.Log.Warn("another node does not agree: failsafe cannot keep the service running without ZooKeeper",
						"service", name, "member", p.Node, "agent", p.Agent, "why", err)
				}
			})
		}
	}
}

// askOne asks for one promise, and tells how far it carries.
func (g *Gate) askOne(ctx context.Context, service string, token int64, p election.Peer, lease time.Duration) (time.Duration, error) {
	if p.Agent == "" {
		return 0, fmt.Errorf("%s has no agent", p.Node)
	}
	ctx, cancel := context.WithTimeout(ctx, lease/3)
	defer cancel()
	sent := g.cfg.Now() // P1: the promise binds from when the question is heard, which is later
	err := g.cfg.Agent.Promise(ctx, p.Agent, agent.PromiseRequest{
		Service: service, Token: token, By: g.cfg.Node, Of: p.Node, Machine: p.Machine, For: election.PromiseLength(lease),
	})
	return sent + election.PromiseReach(lease), err
}

// stretch extends the deadline for the terms that may go on, and ends the others.
func (k *keeper) stretch(ctx context.Context, lease time.Duration) {
	k.mu.lock()
	defer k.mu.unlock()
	now, backed := k.cfg.Now(), k.cfg.Session.Backed()
	longest := time.Duration(0)
	for _, o := range k.terms {
		if !o.ended {
			longest = max(longest, o.reach(now))
		}
	}
	if longest <= backed || !k.cfg.Session.ExtendByPromises(longest) {
		return // everything ends with the lease, as without failsafe
	}
	if !k.held {
		k.held = true
		k.cfg.Log.Warn("ZooKeeper does not answer: all other nodes agreed not to start the service, so it keeps running (failsafe)",
			"services", k.promised(now), "lease", (backed - now).Round(time.Millisecond))
	}
	deadline := longest
	for t, o := range k.terms {
		limit := max(backed, o.reach(now))
		deadline = min(deadline, limit)
		k.wane(ctx, t, o, limit-now, lease)
	}
	if deadline > max(k.told, backed) {
		k.cfg.Show(deadline, true)
		if err := k.tell(deadline); err != nil {
			k.cfg.Log.Warn("cannot extend the lease at the guardians", "error", err)
		}
	}
}

// wane ends one term whose own time is nearly over while other terms go on: its programs are asked to end, then killed, early enough to
// be proved dead in time. Without that proof no term goes on. The caller holds mu.
func (k *keeper) wane(ctx context.Context, t Term, o *otherPromises, left, lease time.Duration) {
	if left <= election.StopEarly(lease) && !o.ended {
		o.ended = true
		k.cfg.Log.Warn("the other nodes have not agreed, and the service stops when the lease ends (failsafe)", "service", t.Name())
		t.End(election.ErrLeaseEnding)
	}
	if left <= election.KillEarly(lease) && !o.killed {
		o.killed = true
		if kill := t.Killer(); kill != nil {
			k.helpers.Go(func() { kill(ctx) })
		}
	}
}

// promised names the services that go on. The caller holds mu.
func (k *keeper) promised(now time.Duration) (names []string) {
	for t, o := range k.terms {
		if o.reach(now) > k.cfg.Session.Backed() {
			names = append(names, t.Name())
		}
	}
	slices.Sort(names)
	return names
}

// findQuorum looks for ZooKeeper by another connection than our session's, while the session relies on promises. P6: otherwise nodes that
// rely on each other's promises would not notice that ZooKeeper is back.
func (k *keeper) findQuorum(ctx context.Context, now, lease time.Duration) {
	k.mu.lock()
	due := k.held && now >= k.look
	if due {
		k.look = now + 2*lease // until it is known
	}
	k.mu.unlock()
	if !due {
		return
	}
	k.helpers.Go(func() {
		sent := k.cfg.Now()
		if k.cfg.Session.HasQuorum(ctx) {
			k.cfg.Promises.Acked(sent, lease)
		}
		k.mu.lock()
		defer k.mu.unlock()
		k.look = sent + election.GoneAfter(lease)/2
	})
}
