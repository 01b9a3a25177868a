package supervisor

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"understudy/election"
	"understudy/fencing/agent"
	"understudy/supervisor/child"
)

// hold says how long what runs in one session may run: for as long as ZooKeeper backs the lease; or, of a failsafe service,
// for as long as everybody has promised who could start it in our place.
//
// P1, P3: the guardians know one deadline for all that runs. So it is the earliest of those of all services that may run, and
// a service may be started only while it is ZooKeeper's own.
type hold struct {
	sup   *supervisor
	sess  *election.Session
	epoch uint64

	turn chan struct{} // whoever has taken its one token may touch what follows; to wait for the guardians is no harm
	told time.Duration // the furthest that the guardians know
	runs map[*service]*cover
	next time.Duration // when to look for an ensemble again
	woke chan struct{} // has a token when keep has to look at once
	held bool          // ZooKeeper's lease is over, or nearly, and promises are in its place
}

// cover is the promises that one running service goes by.
type cover struct {
	claim   *election.Claim                 // nil: its term is about to go on here
	of      map[election.Peer]time.Duration // until when
	asked   map[election.Peer]bool          // who is being asked
	silent  map[election.Peer]bool          // who gave none, and was told of
	stopped bool                            // it was asked to
	killed  bool
}

// until is how far the promises of everybody carry who has to promise; 0: nobody can.
func (c *cover) until(now time.Duration) time.Duration {
	all, ok := c.counted()
	if !ok {
		return 0
	}
	end := now + election.CoverLength(c.claim.Session())
	for _, p := range all {
		end = min(end, c.of[p])
	}
	return end
}

func (c *cover) counted() ([]election.Peer, bool) {
	if c.claim == nil {
		return nil, false
	}
	return c.claim.Counted()
}

func newCover(claim *election.Claim) *cover {
	return &cover{claim: claim, of: map[election.Peer]time.Duration{}, asked: map[election.Peer]bool{}, silent: map[election.Peer]bool{}}
}

func (s *supervisor) newHold(sess *election.Session, epoch uint64) *hold {
	return &hold{sup: s, sess: sess, epoch: epoch, runs: map[*service]*cover{}, turn: make(chan struct{}, 1), woke: make(chan struct{}, 1)}
}

func (h *hold) lock()   { h.turn <- struct{}{} }
func (h *hold) unlock() { <-h.turn }

// extend takes what ZooKeeper acknowledges to the guardians. P3: what was computed before the session became shorter is too long.
func (h *hold) extend(end time.Duration) error {
	h.lock()
	defer h.unlock()
	return h.tell(min(end, h.sess.Backed()))
}

// shorten takes a lease that ZooKeeper has made shorter to the guardians, and returns when both know of it.
func (h *hold) shorten(ctx context.Context) error {
	select {
	case h.turn <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer h.unlock()
	session, end := h.sess.Timeout(), h.limit()
	if h.told > 0 {
		end = min(end, h.told)
	}
	end = max(end, 1) // P3: a session that is over has none left, and 0 would say that none has begun
	h.told = end
	select {
	case h.woke <- struct{}{}: // P7: it sleeps by the longer session
	default:
	}
	return h.sup.guard.Shorten(ctx, h.epoch, end, child.Watchdog{Timeout: election.Watchdog(session), After: election.AfterLease(session)})
}

// limit is the latest deadline that all that may run is good for: ZooKeeper's own, or one by promises. The turn is ours.
func (h *hold) limit() time.Duration {
	backed := h.sess.Backed()
	if !h.held {
		return backed
	}
	now, latest := h.sup.cfg.Machine.Now(), max(h.told, backed)
	for _, c := range h.runs {
		latest = min(latest, max(backed, c.until(now)))
	}
	return latest
}

// tell sends a deadline; the turn is ours, so that nothing that may be started is overlooked.
func (h *hold) tell(end time.Duration) error {
	h.told = max(h.told, end)
	return h.sup.guard.Extend(h.epoch, end)
}

// plain tells whether the guardians know no deadline but ZooKeeper's own. the turn is ours.
func (h *hold) plain() bool { return h.told <= h.sess.Backed() }

// still takes the turn, unless somebody has it, and fails when the guardians know another deadline than ZooKeeper's own. P3: the
// next image of this process does not know of that, and would start what nobody was asked about. Whoever calls it may hold what
// others wait for who have the turn.
func (h *hold) still() (rest func(), err error) {
	select {
	case h.turn <- struct{}{}:
	default:
		return nil, errHeld
	}
	if !h.plain() {
		h.unlock()
		return nil, errHeld
	}
	return h.unlock, nil
}

// enter has a service be one that may be started: the deadline is ZooKeeper's own then, and goes beyond it only by promises
// that are about this service too.
func (h *hold) enter(ctx context.Context, v *service, claim *election.Claim) bool {
	for {
		h.lock()
		ok := h.plain()
		if ok {
			h.runs[v] = newCover(claim)
		}
		h.unlock()
		if ok {
			return true
		}
		if !pause(ctx, h.sess.Timeout()/100) {
			return false
		}
	}
}

// expect counts the services that run already, and whose terms are about to go on here: nothing is promised about them yet.
func (h *hold) expect() {
	h.lock()
	defer h.unlock()
	h.sup.mu.Lock()
	defer h.sup.mu.Unlock()
	for _, v := range h.sup.services {
		if v.carried != nil {
			h.runs[v] = newCover(nil)
		}
	}
}

// leave says that nothing of a service is alive, nor can be started.
func (h *hold) leave(v *service) {
	h.lock()
	defer h.unlock()
	delete(h.runs, v)
}

// enlist has a claim count on these members, once the deadline is ZooKeeper's own: whoever is listed may rely on being asked
// for all that comes, and was not asked for what is promised already.
func (h *hold) enlist(ctx context.Context, claim *election.Claim, members []election.Peer) {
	for {
		h.lock()
		ok := h.plain()
		if ok {
			claim.Enlist(members)
		}
		h.unlock()
		if ok || !pause(ctx, h.sess.Timeout()/100) {
			return
		}
	}
}

// keep looks after promises until ctx ends.
func (h *hold) keep(ctx context.Context) {
	if h.sup.cfg.Agent == nil {
		return // nobody can be asked
	}
	var asking sync.WaitGroup
	defer asking.Wait()
	for h.sess.Over() == nil {
		session := h.sess.Timeout()
		now := h.sup.cfg.Machine.Now()
		left := h.sess.Acked() + election.AskAfter(session) - now
		if left > 0 {
			h.backed()
		} else {
			h.ask(ctx, &asking, now)
			h.stretch(ctx, &asking, session)
			h.sight(ctx, &asking, now, session)
		}
		timer := time.NewTimer(max(left, session/60))
		select {
		case <-timer.C:
		case <-h.woke:
		case <-ctx.Done():
		}
		timer.Stop()
		if ctx.Err() != nil {
			return
		}
	}
}

// backed notes that ZooKeeper is there.
func (h *hold) backed() {
	h.lock()
	defer h.unlock()
	if h.held {
		h.held = false
		h.sup.log.Info("ZooKeeper acknowledges again: failsafe is over", "session", election.SessionName(h.sess.ID()))
		h.sup.showHold(h.sess, h.sess.Backed(), false)
	}
}

// ask asks whose promise is missing or soon over, each in its own time.
func (h *hold) ask(ctx context.Context, asking *sync.WaitGroup, now time.Duration) {
	h.lock()
	defer h.unlock()
	for v, c := range h.runs {
		all, ok := c.counted()
		if !ok || c.stopped {
			continue
		}
		session := c.claim.Session()
		for _, p := range all {
			if c.asked[p] || c.of[p] > now+election.CoverLength(session)/2 {
				continue
			}
			c.asked[p] = true
			name, token := v.name, c.claim.Token
			asking.Go(func() {
				until, err := h.askOne(ctx, name, token, p, session)
				h.lock()
				defer h.unlock()
				delete(c.asked, p)
				switch {
				case err == nil:
					c.of[p] = max(c.of[p], until)
					delete(c.silent, p)
				case ctx.Err() == nil && !c.silent[p]:
					c.silent[p] = true
					h.sup.log.Warn("a member does not promise not to start it: without ZooKeeper it cannot go on here (failsafe)",
						"service", name, "member", p.Node, "agent", p.Agent, "why", err)
				}
			})
		}
	}
}

// askOne asks for one promise, and tells how far it carries.
func (h *hold) askOne(ctx context.Context, service string, token int64, p election.Peer, session time.Duration) (time.Duration, error) {
	if p.Agent == "" {
		return 0, fmt.Errorf("%s has no agent", p.Node)
	}
	ctx, cancel := context.WithTimeout(ctx, session/6)
	defer cancel()
	m := agent.Method{Keys: h.sup.cfg.Agent.Keys, Dial: h.sup.cfg.Agent.Dial}
	sent := h.sup.cfg.Machine.Now() // P1: it binds from when it is heard, which is later
	err := m.Promise(ctx, p.Agent, agent.Pledge{
		Service: service, Token: token, By: h.sup.self.Node, Of: p.Node, Machine: p.Machine, For: election.PromiseLength(session),
	})
	return sent + election.CoverLength(session), err
}

// stretch has everything go on that may, and end what may not.
func (h *hold) stretch(ctx context.Context, ending *sync.WaitGroup, session time.Duration) {
	h.lock()
	defer h.unlock()
	now, backed := h.sup.cfg.Machine.Now(), h.sess.Backed()
	longest := time.Duration(0)
	for _, c := range h.runs {
		if !c.stopped {
			longest = max(longest, c.until(now))
		}
	}
	if longest <= backed || !h.sess.Hold(longest) {
		return // all ends with the lease, as ever
	}
	if !h.held {
		h.held = true
		h.sup.log.Warn("ZooKeeper acknowledges nothing: going on by the promises of all other members (failsafe)",
			"services", h.covered(now), "lease", (backed - now).Round(time.Millisecond))
	}
	deadline := longest
	for v, c := range h.runs {
		limit := max(backed, c.until(now))
		deadline = min(deadline, limit)
		h.wane(ctx, ending, v, c, limit-now, session)
	}
	if deadline > max(h.told, backed) {
		h.sup.showHold(h.sess, deadline, true)
		if err := h.tell(deadline); err != nil {
			h.sup.log.Warn("cannot extend the lease at the guardians", "error", err)
		}
	}
}

// sight looks for an ensemble by another way than our own session, while that goes by promises. P6: whoever goes on by others'
// promises, and promises to others, would otherwise see none for as long as they do.
func (h *hold) sight(ctx context.Context, looking *sync.WaitGroup, now, session time.Duration) {
	h.lock()
	due := h.held && now >= h.next
	if due {
		h.next = now + session // until it is known
	}
	h.unlock()
	if !due {
		return
	}
	looking.Go(func() {
		sent := h.sup.cfg.Machine.Now()
		if h.sess.Sighted(ctx) {
			h.sup.promises.Acked(sent, session)
		}
		h.lock()
		defer h.unlock()
		h.next = sent + election.GoneAfter(session)/2
	})
}

// wane ends one service whose own time is nearly over, while that of others goes on: it is asked, and then killed, early enough
// to be proved dead in time. Without the proof nothing goes on.
func (h *hold) wane(ctx context.Context, ending *sync.WaitGroup, v *service, c *cover, left, session time.Duration) {
	if left <= election.StopEarly(session) && !c.stopped {
		c.stopped = true
		h.sup.log.Warn("it has no promises to go by, and ends with the lease", "service", v.name)
		v.mortals.fell(election.ErrLeaseEnding)
	}
	if left <= election.KillEarly(session) && !c.killed {
		c.killed = true
		if m := v.mortals.newest(); m != nil {
			ending.Go(func() { v.cut(ctx, nil, m.tree) })
		}
	}
}

// covered names the services that go on. the turn is ours.
func (h *hold) covered(now time.Duration) (names []string) {
	for v, c := range h.runs {
		if c.until(now) > h.sess.Backed() {
			names = append(names, v.name)
		}
	}
	slices.Sort(names)
	return names
}
