package service

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"understudy/election"
	"understudy/supervisor/host"
	"understudy/supervisor/service/role"
	"understudy/supervisor/wait"
)

// candidacy is the candidate of a stay.
type candidacy struct {
	v      *Service
	s      Session
	cand   *election.Candidate // nil: there is none
	birth  election.Birth      // of the service's folder, as this candidate found it
	parted func()              // ends its helpers

	tree host.Tree               // of the candidacy, and of its term
	end  context.CancelCauseFunc // ends these

	opening election.Opening // of the lock, the newest
	beside  bool             // the copies were compared beside a breadcrumb
	intents election.Intents // by which that was taken
	waits   time.Time        // until then, leave a free lock to a preferred node
	decided chan struct{}    // closed when a term that has outlasted its session has its lock again, or cannot have it
}

// Joined starts the goroutines that help a candidate.
func (t *stay) Joined(ctx context.Context) {
	v, cand := t.v, t.candidacy.cand
	if cand == nil { // without a candidate, a term that was handed over is ended
		return
	}
	watching, enough := context.WithCancel(ctx)
	announcing, quiet := context.WithCancel(context.WithoutCancel(ctx)) // also while the service stops, however long that takes
	var wg sync.WaitGroup
	v.view.agent = v.node.AgentAddress(t.s.Session)
	v.view.announce() // the previous candidate may not have announced its state
	v.inbox.newSession()
	unsaid := func() {}
	wg.Go(func() { v.view.announcer.announceNewest(announcing, cand) })
	wg.Go(func() { v.inbox.intents.watch(watching, cand) })
	wg.Go(func() { v.inbox.precheck.checkOften(watching) })
	wg.Go(func() { v.inbox.precheck.probeOften(watching) })
	decided := make(chan struct{})
	t.candidacy.decided = decided
	if v.Outlasts() == 0 {
		close(decided)
	}
	wg.Go(func() {
		select { // until then the breadcrumb names the previous session, and a tree in which the programs run
		case <-decided:
			v.breadcrumb.clear(watching, t.s.Session, cand)
		case <-watching.Done():
		}
	})
	wg.Go(func() { v.inbox.watchdog.checkUntilArmable(watching, t.s.LeaseLength) })
	if v.copy != nil {
		wg.Go(func() { v.copy.obey(watching, &v.inbox.intents, cand.Control.Amend) })
	}
	if v.copy.compared() {
		wg.Go(func() { v.compareCopies(watching, cand, t.s.LeaseLength()/3) })
		wg.Go(func() {
			v.copy.watchLeader(watching, cand.Copies(), func() time.Duration { return v.Given().Replicated.Interval })
		})
		unsaid = t.s.Self.SayAt(v.name, v.copy.at)
	}
	if unwritten := v.history.takeUnwritten(); unwritten != nil {
		wg.Go(func() { v.history.correct(watching, cand, *unwritten) })
	}
	t.candidacy.parted = func() {
		unsaid()
		enough()
		quiet()
		wg.Wait()
	}
}

// Parted ends the candidate's helpers, and deletes the znodes that would show other nodes a candidate.
func (t *stay) Parted(ctx context.Context, now role.State) {
	v, cand := t.v, t.candidacy.cand
	if cand == nil {
		return
	}
	t.candidacy.parted()
	v.mem.saw(0, t.s.Newest())
	t.candidacy.cand = nil
	switch {
	case v.Removed() && v.carried == nil: // else the session's end, or its next candidate, deletes all of it
		t.candidacy.leave(ctx, cand)
		return
	case handing(ctx):
	case now.Place == role.Retrying && ctx.Err() == nil:
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), proofPatience)
		defer cancel()
		if err := cand.Retreat(bounded); err != nil {
			v.log.Debug("cannot delete this node's znodes of the service before the session ends", "error", err)
		}
		v.view.note = fmt.Sprintf("cannot take the service: %v", t.trouble)
		v.view.show()
		_ = cand.Members.Announce(ctx, v.view.member()) // the next candidate announces it again
	}
	v.mem.place = cand.Carry() // the next candidate of this session deletes the rest
}

// leave deletes all that a candidate of a removed service has in ZooKeeper. P6: however long that takes, because until the session ends
// others would wait for a lock that may be ours, and for our place in the queue.
func (c *candidacy) leave(ctx context.Context, cand *election.Candidate) {
	leaving, enough := linger(ctx, c.s.Leave, proofPatience)
	defer enough()
	if err := cand.Leave(leaving); err != nil {
		c.v.log.Debug("cannot delete this node's znodes of the service before the session ends", "error", err)
	}
}

// leavePrevious does that for a candidate that ended before its service was removed: for an upgrade, or until the next try.
func (c *candidacy) leavePrevious(ctx context.Context) {
	previous := c.v.mem.place
	c.v.mem.place = election.CarriedCandidate{}
	if previous.Session == 0 || previous.Session != c.s.ID() { // else the end of its session has deleted all of it
		return
	}
	joining, enough := linger(ctx, c.s.Leave, proofPatience)
	defer enough()
	cand, _, err := c.s.NewCandidate(joining, c.v.name, c.v.conf.order())
	if err != nil {
		c.v.log.Debug("cannot delete this node's znodes of the service before the session ends", "error", err)
		return
	}
	cand.Inherit(previous)
	c.leave(ctx, cand)
}

// Quarantine waits when ZooKeeper has lost its data: there is no breadcrumb of the previous active, so only time proves that its lease has
// ended. P5. A node that was active itself waits, too: another one may have become active before the loss.
func (t *stay) Quarantine(ctx context.Context) role.Event {
	v := t.v
	began, grace := time.Now(), v.conf.GraceDelay
	span := election.PromiseLength(t.s.Longest()) + grace
	v.log.Warn("ZooKeeper's data of this service is new, or may be set back: waiting until any earlier lease has ended", "wait", span)
	v.view.note = fmt.Sprintf("ZooKeeper's data of this service is new, or may be set back: it waits %v, until any earlier lease has ended",
		span)
	v.view.announce()
	// A node with a longer one may have come back meanwhile.
	for left := span; left > 0; left = election.PromiseLength(t.s.Longest()) + grace - time.Since(began) {
		if !wait.For(ctx, left) {
			return role.Event{Kind: role.StayOver} // the next session waits again, from the start
		}
	}
	v.log.Info("any earlier lease has ended")
	if t.candidacy.birth == v.mem.birth && !t.candidacy.outgrow(ctx) {
		return role.Event{Kind: role.StayOver}
	}
	for t.candidacy.cand.Forsake(ctx) != nil { // also if this node is no candidate: all others would wait for it
		if !wait.For(ctx, maxPatience) {
			return role.Event{Kind: role.StayOver}
		}
	}
	v.view.note = ""
	v.mem.reborn(t.candidacy.birth, t.candidacy.cand.Newest, t.s.Newest(), t.candidacy.cand.SetBacks)
	return role.Event{Kind: role.Waited}
}

// outgrow has the next token be greater than those that this node has seen: an older copy of ZooKeeper's data counts on from that.
func (c *candidacy) outgrow(ctx context.Context) bool {
	lost := c.v.mem.known.Token
	if c.cand.SetBacks > c.v.mem.setBacks { // claims that this node has not seen may be lost as well
		lost = max(lost, c.v.mem.known.Zxid)
	}
	for {
		err := c.s.Outgrow(ctx, lost)
		if err == nil || ctx.Err() != nil {
			return ctx.Err() == nil
		}
		c.v.log.Error("ZooKeeper would give lower tokens than before, so no program is started", "error", err)
		c.v.view.note = "ZooKeeper would give lower tokens than before: " + err.Error()
		c.v.view.announce()
		if !wait.For(ctx, maxPatience) {
			return false
		}
	}
}

// BackOff leaves the lock to others for a while. After a refused fencing it ends as soon as the previous active is known to be dead.
func (t *stay) BackOff(ctx context.Context) role.Event {
	v := t.v
	if err := errors.Join(t.candidacy.cand.Withdraw(ctx), t.candidacy.cand.Prefer(ctx, 0)); err != nil {
		return t.failed(err)
	}
	pause := t.candidacy.pause(ctx)
	v.log.Warn("this node waits, so that another node can try", "for", pause)
	v.view.showBackOff(pause)
	enough := time.NewTimer(pause)
	defer enough.Stop()
	waiting, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	lonely, stop := v.copy.watchVacancy()
	defer stop()
	settled := make(chan struct{})
	if v.state.BackOffUntilProof {
		wg.Go(func() {
			if t.candidacy.cand.Crumb.WaitGone(waiting) == nil {
				close(settled)
			}
		})
	}
	over := role.Event{Kind: role.Waited}
	for {
		switch {
		case v.applyConfig():
			v.log.Info("its config has changed: not waiting any longer")
			return over
		case v.inbox.intents.forced():
			v.log.Info("an operator wants it here: not waiting any longer")
			return over
		case v.inbox.intents.isErased():
			return t.failed(election.ErrDeleted)
		case v.untaken():
			v.log.Info("no other node takes it over: not waiting any longer")
			return over
		}
		select {
		case <-v.inbox.news:
		case <-lonely:
		case <-settled:
			v.log.Info("the previous node's program is known to be dead now")
			return over
		case <-enough.C:
			if ctx.Err() == nil {
				return over
			}
		case <-ctx.Done():
			return role.Event{Kind: role.StayOver}
		}
	}
}

// pause is how long the lock is left to others: as briefly as before another start, if the program could not be started for a cause of this
// host and no other node can take it.
func (c *candidacy) pause(ctx context.Context) time.Duration {
	v, r := c.v, c.v.conf.Restart
	if !v.mem.unstarted {
		return r.RejoinAfter
	}
	rivaled, err := c.cand.Members.Rivaled(ctx)
	if rivaled || err != nil {
		return r.RejoinAfter
	}
	v.log.Info("no other node can take the service")
	return min(v.growing(), r.RejoinAfter)
}

// Prepare makes the tree, so that a failover need not make it.
func (t *stay) Prepare(ctx context.Context) role.Event {
	v := t.v
	if wait.Closed(t.done) { // the stay has ended with the term
		return role.Event{Kind: role.StayOver}
	}
	var tree host.Tree
	var err error
	if v.copy != nil {
		v.copy.Free() // of a previous term, whose tree was proved dead
		tree, err = v.copy.Tree(ctx)
	} else {
		tree, err = v.node.Guard().NewTree(ctx, t.s.Epoch, v.name, election.EncodeRelease(t.candidacy.cand.Paths()))
	}
	if err != nil {
		return t.failed(fmt.Errorf("make a container for the program: %w", err))
	}
	t.candidacy.tree, t.candidacy.waits = tree, time.Time{}
	v.view.agent = v.node.AgentAddress(t.s.Session)
	return role.Event{Kind: role.Prepared}
}

// TreeMade registers the tree, with a function that ends its candidacy or term: the node that holds the lock may ask for the tree's death.
func (t *stay) TreeMade(end context.CancelCauseFunc) {
	t.candidacy.end = end
	t.v.trees.add(&OwnTree{
		ID: idOf(t.candidacy.tree), tree: t.candidacy.tree, end: end, pendingEffects: t.v.unit.PendingEffects,
		promoteTree: t.term.promotion.promoteTree,
	})
}

// Discard ends a tree in which nothing was started. A copy runs on, unless the lock may be ours, with a breadcrumb that names its tree.
func (t *stay) Discard(ctx context.Context) role.Event {
	if t.v.copy != nil && !t.candidacy.cand.MayHoldLock() {
		return role.Event{Kind: role.Proved}
	}
	t.term.promotion.blockStarts(ctx, &t.term)
	e := t.term.killUntilProved(ctx)
	if e.Kind == role.Proved {
		t.v.copy.free()
	}
	return e
}
