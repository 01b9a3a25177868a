package supervisor

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"understudy/election"
	"understudy/fencing"
	"understudy/supervisor/child"
)

// proofPatience is how long one attempt to prove a tree dead may take before it is logged and made again.
const proofPatience = 5 * time.Second

// partingPatience is how long a supervisor that is to stop goes on trying to prove a death.
const partingPatience = 30 * time.Second

// nobody is how a former active is known to be dead when it has left no breadcrumb.
const nobody = "nobody was active"

// term runs from a won lock to its end, straight down. P5, P1, P2 are the order of its calls.
func (v *service) term(ctx context.Context, t turn, claim *election.Claim, tree Tree) (action, error) {
	v.on(lockWon, "token", claim.Token)
	entry := election.Activation{Token: claim.Token, Start: time.Now().UTC()}

	var over event
	fenced, err := v.fence(ctx, claim)
	if err != nil {
		over = v.refusal(ctx, err)
	} else {
		entry.Fenced = fenced.By
		v.on(formerDead, "token", claim.Token, "fenced", fenced.By)
		over = v.active(ctx, t, claim, tree, &entry)
	}

	v.on(over, "token", claim.Token)
	if err := v.end(ctx, t, tree); err != nil {
		v.on(treeAlive)
		return nothing, err // P2: what may be alive keeps its lock
	}
	v.on(treeDead)
	if v.Once && over == stopAsked && v.process != nil {
		status := exitOf(v.process)
		v.finished = &status
	}
	// The context may have ended; giving back what is ours is bounded by the session.
	if err := claim.Release(context.WithoutCancel(ctx)); err != nil {
		v.log.Warn("the lock could not be given back, it goes with its session", "service", v.Name, "error", err)
		return nothing, err
	}
	do := v.on(lockReleased, "token", claim.Token)
	v.finish(ctx, t, entry, over)
	return do, nil
}

// end kills the tree, and returns nil only when it is proved dead and nothing can be started in it any more. While the
// lease lasts the lock is kept, and it goes on trying.
func (v *service) end(ctx context.Context, t turn, tree Tree) error {
	gaveUp := time.Now().Add(partingPatience)
	for {
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), proofPatience)
		err := tree.End(bounded)
		cancel()
		if err == nil {
			return nil
		}
		v.log.Error("the child's death is not proved, the lock is kept", "service", v.Name, "error", err)
		select {
		case <-t.sess.Ended():
		default:
			if ctx.Err() == nil || time.Now().Before(gaveUp) {
				continue
			}
		}
		v.undead, v.grave = tree, t.epoch
		return fmt.Errorf("%s: %w: %w", v.Name, errUndead, err)
	}
}

// fence makes sure that nobody else's child runs, and that the breadcrumb names us: P5.
func (v *service) fence(ctx context.Context, claim *election.Claim) (fencing.Outcome, error) {
	fenced := fencing.Outcome{By: nobody}
	if claim.Previous == nil {
		return fenced, claim.Inscribe(ctx)
	}
	for {
		if claim.Previous != nil {
			var err error
			if fenced, err = v.fenceOne(ctx, claim); errors.Is(err, election.ErrCrumbChanged) {
				continue
			} else if err != nil {
				return fenced, err
			}
		}
		err := claim.Inscribe(ctx)
		if !errors.Is(err, election.ErrCrumbChanged) {
			return fenced, err
		}
	}
}

// fenceOne fences whom the breadcrumb names now, while watching whether the lock stays ours and whether the breadcrumb goes.
func (v *service) fenceOne(ctx context.Context, claim *election.Claim) (fencing.Outcome, error) {
	p := claim.Previous
	chain := fencing.Chain{
		Local: func(ctx context.Context, _ fencing.Target) (fencing.Verdict, string, error) { return v.knows(ctx, p) },
		Steps: v.Fencing.Steps, OnFailure: v.Fencing.OnFailure, Grace: v.Fencing.Grace, Logger: v.log,
	}
	target := fencing.Target{
		Service: v.Name, Node: p.Node, Host: p.Host, Machine: p.Machine, Boot: p.Boot, Token: claim.PreviousToken,
		GuardianPid: p.GuardianPid, Address: p.Agent, SessionTimeout: time.Duration(p.SessionMs) * time.Millisecond,
	}
	lives, err := claim.PreviousLives(ctx)
	if err != nil {
		return fencing.Outcome{}, err
	}
	if lives { // the lock was deleted by hand: its lease may go on for as long as a session does
		chain.Grace += target.SessionTimeout
	}
	v.log.Info("fencing the former active", "service", v.Name, "node", p.Node, "token", claim.PreviousToken, "grace", chain.Grace)
	ctx, cancel := context.WithCancelCause(ctx)
	confirmed := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := claim.Confirmed(ctx); err != nil {
			cancel(err)
			return
		}
		close(confirmed)
	})
	defer wg.Wait()
	defer cancel(nil)
	return chain.Fence(ctx, target, claim.Since, confirmed)
}

// knows tells what this machine knows by itself of a former active's child: it can look at, and end, the process tree of
// an earlier or another supervisor here; and nothing outlives a boot.
func (v *service) knows(ctx context.Context, p *election.BreadCrumb) (fencing.Verdict, string, error) {
	if p.Boot != v.node.Boot {
		if p.Machine != "" && p.Machine == v.node.Machine && p.Node == v.node.Node {
			return fencing.Dead, "this machine has booted since", nil
		}
		return fencing.Unknown, "", nil
	}
	if p.Machine != v.node.Machine {
		return fencing.Unknown, "", nil
	}
	ctx, cancel := context.WithTimeout(ctx, proofPatience)
	defer cancel()
	err := v.machine.KillTree(ctx, p.Tree)
	switch {
	case errors.Is(err, child.ErrElsewhere), errors.Is(err, child.ErrNotSeen):
		return fencing.Unknown, "", nil // the grace delay is for that
	case err != nil:
		return fencing.Alive, "", fmt.Errorf("end the tree of %s on this machine: %w", p.Node, err)
	}
	return fencing.Dead, "its tree on this machine is dead", nil
}

// refusal tells what a failed fencing means.
func (v *service) refusal(ctx context.Context, err error) event {
	if ctx.Err() != nil {
		return ending(ctx)
	}
	if errors.Is(err, election.ErrLost) {
		return lockLost
	}
	v.refused = true
	v.log.Error("the former active could not be fenced: nothing is started; when you know that its child is dead, "+
		"run `understudy fence confirm`", "service", v.Name, "error", err)
	return formerAlive
}

// ending tells why a context has ended.
func ending(ctx context.Context) event {
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, election.ErrLeaseEnding), errors.Is(cause, election.ErrExpired), errors.Is(cause, errGuard):
		return leaseEnding
	case errors.Is(cause, election.ErrLost):
		return lockLost
	default:
		return stopAsked
	}
}

// finish closes the term's entry in the history.
func (v *service) finish(ctx context.Context, t turn, entry election.Activation, over event) {
	if entry.Entry == "" {
		return
	}
	now := time.Now().UTC()
	ctx = context.WithoutCancel(ctx)
	pause(ctx, settling) // whoever takes over comes first
	bounded, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	entry.End, entry.Reason = &now, over.String()
	if err := t.cand.Amend(bounded, entry.Entry, entry); err != nil {
		v.log.Debug("the end of the term is not in the history", "service", v.Name, "error", err)
	}
}
