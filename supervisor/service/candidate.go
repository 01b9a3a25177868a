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
	birth  election.Birth      // of the service's folder, as it has found it
	parted func()              // ends what goes on beside it

	tree unit.Tree
	end  context.CancelCauseFunc // ends the candidacy or term that has the tree
	wait lockWait
}

// Joined begins what goes on beside a candidacy.
func (c *candidate) Joined(ctx context.Context) {
	v, cand := c.v, c.cand
	if cand == nil { // what was handed over is ended without
		return
	}
	hearing, deaf := context.WithCancel(ctx)
	announcing, quiet := context.WithCancel(context.WithoutCancel(ctx)) // also while it stops, for as long as that takes
	var wg sync.WaitGroup
	v.view.agent = v.node.Agent.At(c.s.Session)
	v.say() // what the former candidate was about to say is lost
	v.inbox.newSession()
	wg.Go(func() { v.announce(announcing, cand) })
	wg.Go(func() { v.watchControl(hearing, cand) })
	wg.Go(func() { v.keepPrecheck(hearing) })
	wg.Go(func() { v.clearLeftover(hearing, c.s.Session, cand) })
	wg.Go(func() { v.keepTamed(hearing, c.s.Timeout) })
	if words := v.mem.words; words != nil {
		v.mem.words = nil
		wg.Go(func() { v.sayLast(hearing, cand, *words) })
	}
	c.parted = func() {
		deaf()
		quiet()
		wg.Wait()
	}
}

// Parted takes back what others are not to see of a candidate that is none any more.
func (c *candidate) Parted(ctx context.Context, now role.State) {
	v, cand := c.v, c.cand
	if cand == nil {
		return
	}
	c.parted()
	c.cand = nil
	defer func() { v.mem.place = cand.Carry() }() // what could not be taken back is the next one's of this session
	switch {
	case handing(ctx):
	case v.removed.Load(): // else the session's end takes it all
		v.vanish(ctx, cand.Leave)
	case now.Place == role.Retrying && ctx.Err() == nil:
		v.vanish(ctx, cand.Retreat)
		v.view.note = fmt.Sprintf("cannot stand: %v", c.trouble)
		v.show()
		_ = cand.Members.Announce(ctx, v.member()) // the next candidate says it again
	}
}

// vanish takes back what this node says of a service that it has no more, or is no candidate of.
func (v *Service) vanish(ctx context.Context, leave func(context.Context) error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), proofPatience)
	defer cancel()
	if err := leave(ctx); err != nil {
		v.log.Debug("what this node says of the service stays until the session ends", "service", v.name, "error", err)
	}
}

// watchControl keeps the wishes of operators and of preferred nodes current.
func (v *Service) watchControl(ctx context.Context, cand *election.Candidate) {
	for ctx.Err() == nil {
		err := cand.Control.Watch(ctx, func(w election.Intents) {
			v.inbox.tell(func() { v.inbox.wishes, v.inbox.heeded = w, true })
		})
		if errors.Is(err, election.ErrDeleted) {
			v.inbox.tell(func() { v.inbox.erased = true })
			return
		}
		if err != nil && ctx.Err() == nil {
			v.log.Error("cannot read what operators want, trying again", "service", v.name, "error", err)
			wait.For(ctx, time.Second)
		}
	}
}

// Quarantine waits when ZooKeeper has lost its data: there is no breadcrumb of whoever was active, so only time tells that
// its lease has ended. P5. That it was this node is no exception: another may have followed it before the loss.
func (c *candidate) Quarantine(ctx context.Context) role.Event {
	v := c.v
	span := c.s.Longest() + v.conf.GraceDelay
	v.log.Warn("ZooKeeper has lost its data, and with it who was active: waiting until any lease has ended", "service", v.name, "wait", span)
	v.view.note = "ZooKeeper has lost its data: it waits until any lease of before has ended"
	v.say()
	if !wait.For(ctx, span) {
		return role.Event{Kind: role.StayOver} // the next session waits again, from the start
	}
	v.view.note = ""
	v.mem.birth = c.birth
	return role.Event{Kind: role.Waited}
}

// BackOff leaves the lock to others for a while; after a refused fencing, until that is settled at the longest.
func (c *candidate) BackOff(ctx context.Context) role.Event {
	v := c.v
	if err := errors.Join(c.cand.Withdraw(ctx), c.cand.Prefer(ctx, 0)); err != nil {
		return c.failed(err)
	}
	v.log.Warn("resting, so that another node can try", "service", v.name, "for", v.conf.Restart.RejoinAfter)
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
			v.log.Info("its config has changed: not resting any longer", "service", v.name)
			return rested
		case v.forced():
			v.log.Info("an operator wants it here: not resting any longer", "service", v.name)
			return rested
		case v.inbox.isErased():
			return c.failed(election.ErrDeleted)
		}
		select {
		case <-v.inbox.stir:
		case <-settled:
			v.log.Info("the former active is known to be dead now", "service", v.name)
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

// Prepare makes the tree, so that a failover finds it there.
func (c *candidate) Prepare(ctx context.Context) role.Event {
	v := c.v
	if wait.Closed(c.done) { // what follows a term is nothing any more
		return role.Event{Kind: role.StayOver}
	}
	tree, err := v.node.Guard().NewTree(ctx, c.s.Epoch, v.name, election.EncodeRelease(c.cand.Paths()))
	if err != nil {
		return c.failed(fmt.Errorf("make a container for the child: %w", err))
	}
	c.tree, c.wait = tree, lockWait{}
	v.view.agent = v.node.Agent.At(c.s.Session)
	return role.Event{Kind: role.Prepared}
}

// Treed has the tree known, and how to end what is done in it: whoever holds the lock may ask for its death.
func (c *candidate) Treed(end context.CancelCauseFunc) {
	c.end = end
	c.v.trees.add(&Tree{ID: idOf(c.tree), tree: c.tree, end: end, owes: c.v.unit.Owes})
}

// Discard ends the tree, in which nothing was started.
func (c *candidate) Discard(ctx context.Context) role.Event { return c.prove(ctx) }
