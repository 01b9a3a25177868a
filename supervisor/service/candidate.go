package service

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"understudy/election"
	"understudy/supervisor/service/role"
	"understudy/supervisor/unit"
	"understudy/supervisor/wait"
)

// candidate is this node's candidacy, and the tree that is prepared for its term.
type candidate struct {
	*stay
	cand   *election.Candidate // nil: there is none
	birth  election.Birth      // of the service's folder, as this candidate found it
	parted func()              // ends its helpers

	tree unit.Tree
	end  context.CancelCauseFunc // ends the candidacy or term that has the tree
	wait lockWait
}

// stands begins the candidacy. It may belong to a term that was handed over.
func (c *candidate) stands(cand *election.Candidate, birth election.Birth) {
	c.cand, c.birth = cand, birth
	if carried := c.v.handover.carried; carried != nil {
		c.tree = carried.tree
	}
}

// Joined starts the goroutines that help a candidate.
func (c *candidate) Joined(ctx context.Context) {
	v, cand := c.v, c.cand
	if cand == nil { // without a candidate, a term that was handed over is ended
		return
	}
	watching, enough := context.WithCancel(ctx)
	announcing, quiet := context.WithCancel(context.WithoutCancel(ctx)) // also while the service stops, however long that takes
	var wg sync.WaitGroup
	v.view.at(v.node.Agent.At(c.s.Session))
	v.view.say() // the former candidate may not have announced its state
	v.inbox.newSession()
	wg.Go(func() { v.view.announcer.keep(announcing, cand) })
	wg.Go(func() { v.inbox.intents.watch(watching, cand) })
	wg.Go(func() { v.inbox.precheck.keep(watching) })
	wg.Go(func() { v.local.crumbs.clear(watching, c.s.Session, cand) })
	wg.Go(func() { v.inbox.watchdog.keep(watching, c.s.Timeout) })
	if owed := v.history.takeOwed(); owed != nil {
		wg.Go(func() { v.history.correct(watching, cand, *owed) })
	}
	c.parted = func() {
		enough()
		quiet()
		wg.Wait()
	}
}

// Parted ends the candidate's helpers, and deletes the znodes that would show other nodes a candidate.
func (c *candidate) Parted(ctx context.Context, now role.State) {
	v, cand := c.v, c.cand
	if cand == nil {
		return
	}
	c.parted()
	c.cand = nil
	defer func() { v.mem.left(cand.Carry()) }() // the next candidate of this session deletes the rest
	switch {
	case handing(ctx):
	case v.Removed(): // else the session's end deletes all of it
		c.vanish(ctx, cand.Leave)
	case now.Place == role.Retrying && ctx.Err() == nil:
		c.vanish(ctx, cand.Retreat)
		v.view.remark(fmt.Sprintf("cannot be a candidate: %v", c.trouble))
		v.view.show()
		_ = cand.Members.Announce(ctx, v.view.member()) // the next candidate announces it again
	}
}

// vanish deletes this node's znodes of a service that it does not have any more, or is no candidate for.
func (c *candidate) vanish(ctx context.Context, leave func(context.Context) error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), proofPatience)
	defer cancel()
	if err := leave(ctx); err != nil {
		c.v.log.Debug("cannot delete this node's znodes of the service before the session ends", "error", err)
	}
}

// Quarantine waits when ZooKeeper has lost its data: there is no breadcrumb of the former active, so only time proves that its lease has
// ended. P5. A node that was active itself waits, too: another one may have become active before the loss.
func (c *candidate) Quarantine(ctx context.Context) role.Event {
	v := c.v
	span := c.s.Longest() + v.conf.GraceDelay
	v.log.Warn("ZooKeeper has lost its data, and with it who was active: waiting until any lease has ended", "wait", span)
	v.view.remark("ZooKeeper has lost its data: it waits until any earlier lease has ended")
	v.view.say()
	if !wait.For(ctx, span) {
		return role.Event{Kind: role.StayOver} // the next session waits again, from the start
	}
	v.view.remark("")
	v.mem.reborn(c.birth)
	return role.Event{Kind: role.Waited}
}

// BackOff leaves the lock to others for a while. After a refused fencing it ends as soon as the former active is known to be dead.
func (c *candidate) BackOff(ctx context.Context) role.Event {
	v := c.v
	if err := errors.Join(c.cand.Withdraw(ctx), c.cand.Prefer(ctx, 0)); err != nil {
		return c.failed(err)
	}
	v.log.Warn("backing off, so that another node can try", "for", v.conf.Restart.RejoinAfter)
	enough := time.NewTimer(v.conf.Restart.RejoinAfter)
	defer enough.Stop()
	waiting, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	settled := make(chan struct{})
	if v.state.Settle {
		wg.Go(func() {
			if c.cand.Crumb.Settled(waiting) == nil {
				close(settled)
			}
		})
	}
	rested := role.Event{Kind: role.Waited}
	for {
		switch {
		case v.takeUp():
			v.log.Info("its config has changed: not backing off any longer")
			return rested
		case v.inbox.intents.forced():
			v.log.Info("an operator wants it here: not backing off any longer")
			return rested
		case v.inbox.intents.isErased():
			return c.failed(election.ErrDeleted)
		}
		select {
		case <-v.inbox.news:
		case <-settled:
			v.log.Info("the former active is known to be dead now")
			return rested
		case <-enough.C:
			if ctx.Err() == nil {
				return rested
			}
		case <-ctx.Done():
			return role.Event{Kind: role.StayOver}
		}
	}
}

// Prepare makes the tree, so that a failover need not make it.
func (c *candidate) Prepare(ctx context.Context) role.Event {
	v := c.v
	if wait.Closed(c.done) { // the stay has ended with the term
		return role.Event{Kind: role.StayOver}
	}
	tree, err := v.node.Guard().NewTree(ctx, c.s.Epoch, v.name, election.EncodeRelease(c.cand.Paths()))
	if err != nil {
		return c.failed(fmt.Errorf("make a container for the child: %w", err))
	}
	c.tree, c.wait = tree, lockWait{}
	v.view.at(v.node.Agent.At(c.s.Session))
	return role.Event{Kind: role.Prepared}
}

// Treed registers the tree, with a function that ends its candidacy or term: the node that holds the lock may ask for the tree's death.
func (c *candidate) Treed(end context.CancelCauseFunc) {
	c.end = end
	c.v.local.trees.add(&Tree{ID: idOf(c.tree), tree: c.tree, end: end, owes: c.v.unit.Owes})
}

// Discard ends a tree in which nothing was started.
func (c *candidate) Discard(ctx context.Context) role.Event { return c.prove(ctx) }
