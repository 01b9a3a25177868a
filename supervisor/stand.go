package supervisor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"understudy/election"
)

// errReordered says that the config has another kind of election now.
var errReordered = errors.New("another kind of election")

// stand waits for the lock, takes it, and runs a term. The tree is made ready before, so that a failover finds it there.
func (v *service) stand(ctx context.Context, t turn) (action, error) {
	tree, err := v.guard.NewTree(ctx, t.epoch, v.name, election.EncodeRelease(t.cand.Paths()))
	if err != nil {
		return nothing, fmt.Errorf("make a container for the child: %w", err)
	}
	standing, fell := context.WithCancelCause(ctx) // when another node has the tree ended: nothing can be started in it any more
	defer fell(nil)
	claim, err := v.obtain(standing, t, tree, fell)
	if err == nil {
		v.failure = ""
		v.follow()
		v.engage()
		return v.term(standing, t, claim, tree)
	}
	if ctx.Err() == nil {
		v.on(claimFailed)
	}
	if undead := v.end(ctx, t, tree); undead != nil {
		return nothing, undead
	}
	return nothing, err
}

// obtain returns with the lock.
func (v *service) obtain(ctx context.Context, t turn, tree Tree, fell context.CancelCauseFunc) (*election.Claim, error) {
	id, err := tree.ID()
	if err != nil {
		return nil, fmt.Errorf("describe the child's container: %w", err)
	}
	v.mortals.add(v.mortal(id, tree, fell))
	crumb := election.BreadCrumb{GuardianPid: v.guard.Pid(), Tree: id, Agent: v.agent.address(t.sess)}
	v.tellStanding(true)
	defer v.tellStanding(false)
	if left := time.Until(v.relapses.until); left > 0 && v.demotion() != nil {
		again := time.AfterFunc(left, func() { poke(v.news.stir) }) // it is preferred again
		defer again.Stop()
	}
	var patience time.Time // until when a preferred node is left to take the lock
	for {
		wishes, allowed, err := v.permitted(ctx, t)
		if err != nil {
			return nil, err
		}
		var opening election.Opening
		err = v.news.untilStirred(ctx, func(ctx context.Context) (err error) {
			asked := time.Now()
			if opening, err = t.cand.Wait(ctx); time.Since(asked) > parting {
				patience = time.Time{} // somebody else had it meanwhile
			}
			return err
		})
		if errors.Is(err, errStirred) {
			continue
		} else if err != nil {
			return nil, err
		}
		if !allowed && !opening.Ours() {
			continue
		}
		if polite := v.defers(wishes); polite > 0 && !opening.Ours() {
			if patience.IsZero() {
				patience = time.Now().Add(polite)
			}
			if left := time.Until(patience); left > 0 {
				wait := func(ctx context.Context) error { pause(ctx, left); return context.Cause(ctx) }
				if err := v.news.untilStirred(ctx, wait); errors.Is(err, errStirred) {
					continue
				} else if err != nil {
					return nil, err
				}
			}
			v.vain = time.Now().Add(t.sess.Timeout())
		}
		patience = time.Time{}
		v.on(lockFree)
		claim, err := t.cand.Take(ctx, opening.Under(wishes), crumb)
		if err != nil {
			return nil, err
		}
		if claim != nil {
			return claim, nil
		}
		v.on(lockTaken)
	}
}

// permitted waits until this node may stand for election, and returns the wishes that say so. What may be ours without our
// knowing is looked at first, also where nothing more is allowed.
func (v *service) permitted(ctx context.Context, t turn) (w election.Wishes, allowed bool, err error) {
	for {
		if v.erased() {
			return w, false, election.ErrDeleted
		}
		if v.takeUp() {
			v.say()
		}
		if election.Order(v.Election) != t.cand.Order() && !t.cand.Unsure() {
			return w, false, errReordered
		}
		wishes, h := v.hindrance()
		if h.why == "" {
			v.hinder(h)
			err := prefer(ctx, t.cand, v.preference())
			v.tell()
			if s := wishes.Control.Switchover; s != nil && s.To == v.node.Node {
				t.cand.Advance(election.First)
			}
			return wishes, true, err
		}
		if t.cand.Unsure() {
			return wishes, false, nil
		}
		v.hinder(h)
		if !h.unknown {
			if err := prefer(ctx, t.cand, 0); err != nil {
				return wishes, false, err
			}
			if err := t.cand.Withdraw(ctx); err != nil && ctx.Err() == nil {
				v.log.Debug("cannot leave the queue", "service", v.name, "error", err)
			}
		}
		select {
		case <-v.news.stir:
		case <-ctx.Done():
			return wishes, false, context.Cause(ctx)
		}
	}
}

// prefer tells the preference. What is refused again and again is for a candidate that stands anew.
func prefer(ctx context.Context, cand *election.Candidate, priority int) error {
	for wait := 50 * time.Millisecond; ; wait *= 2 {
		err := cand.Prefer(ctx, priority)
		if err == nil || wait > time.Second || !pause(ctx, wait) {
			return err
		}
	}
}

// hinder shows why this node does not stand, or that it does.
func (v *service) hinder(h hindrance) {
	switch {
	case h.unknown:
		return
	case h.paused:
		v.note = h.why
		v.on(servicePaused, "why", h.why)
		v.tell()
		return
	}
	if v.state.role == Paused {
		v.note = ""
		v.on(serviceResumed)
	}
	if v.note == h.why {
		return
	}
	if v.note = h.why; h.why != "" {
		v.log.Warn("not standing for election", "service", v.name, "why", h.why)
	} else {
		v.log.Info("standing for election again", "service", v.name)
	}
	v.say()
}

func (v *service) tellStanding(yes bool) {
	v.news.mu.Lock()
	defer v.news.mu.Unlock()
	v.news.standing = yes
	if yes {
		poke(v.news.stood)
	}
}
