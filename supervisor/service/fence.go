package service

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"understudy/election"
	"understudy/fencing"
	"understudy/fencing/agent"
	"understudy/supervisor/child"
	"understudy/supervisor/service/role"
)

// fence is how a term makes sure that no other node's programs run.
type fence struct {
	*term
	until time.Duration // P1: a promise forbids a start before that, unless a proof has made it needless
}

// begin resets the state of a former term.
func (t *fence) begin() { t.until = 0 }

// errPaused says that nobody may be promoted.
var errPaused = errors.New("the service is paused")

// Fence makes sure that no other node's child runs, and that the breadcrumb names us: P5.
func (t *fence) Fence(ctx context.Context) role.Event {
	v := t.v
	former, token, began := t.claim.Previous, t.claim.PreviousToken, time.Now()
	fenced, err := t.fenceUnlessPaused(ctx)
	v.mem.story.formerDead(fenced.By)
	if t.entry.fenced(election.Proof(fenced.Story())); former != nil {
		if !errors.Is(err, errPaused) { // else the fencing had no outcome
			by := fenced.By
			if err != nil {
				by = ""
			}
			v.node.Observer.Fenced(v.name, by, time.Since(began))
		}
		t.entry.took(time.Since(began))
	}
	if p := t.claim.Previous; p != nil && seenAlive(err) { // before another node, which may not see it, claims
		v.local.crumbs.alive(ctx, t.cand, p.Tree, err)
	}
	t.tellFenced(ctx, former, token, fenced, err)
	if err == nil {
		err = t.alone(ctx)
	}
	if err != nil {
		return t.refusal(ctx, err)
	}
	return role.Event{Kind: role.FormerDead}
}

// fenceUnlessPaused fences the node that the breadcrumb names, and gives up if the service is paused meanwhile.
func (t *fence) fenceUnlessPaused(ctx context.Context) (fencing.Outcome, error) {
	v := t.v
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stirred := false
	var wg sync.WaitGroup
	wg.Go(func() {
		for !v.inbox.intents.control().Paused { // it may be known already
			select {
			case <-v.inbox.news:
				stirred = true
			case <-ctx.Done():
				return
			}
		}
		cancel(errPaused)
	})
	fenced, err := t.ensureDead(ctx)
	if err != nil && errors.Is(context.Cause(ctx), errPaused) {
		err = errPaused
	}
	cancel(nil)
	wg.Wait()
	if stirred {
		v.inbox.news.stir() // the next action has not seen the pause
	}
	return fenced, err
}

func (t *fence) ensureDead(ctx context.Context) (fencing.Outcome, error) {
	claim := t.claim
	t.until = t.v.node.Promises.Bound(t.v.name)
	fenced := fencing.Outcome{By: string(election.NoBreadcrumb)}
	if claim.Previous == nil {
		if err := t.sitOut(ctx, nil); err != nil {
			return fenced, err
		}
		return fenced, claim.Inscribe(ctx)
	}
	for {
		if claim.Previous != nil {
			var err error
			if fenced, err = t.fenceOne(ctx); errors.Is(err, election.ErrCrumbChanged) {
				continue
			} else if err != nil {
				return fenced, err
			}
		}
		// P5: a delay proves nothing if its node was seen alive meanwhile.
		if p := claim.Previous; p != nil && p.Leftover.Known && fenced.By == fencing.ByGrace {
			continue
		}
		err := claim.Inscribe(ctx)
		if !errors.Is(err, election.ErrCrumbChanged) {
			return fenced, err
		}
	}
}

// fenceOne fences the node that the breadcrumb names now. Meanwhile it watches whether we lose the lock, and whether the breadcrumb goes.
func (t *fence) fenceOne(ctx context.Context) (fencing.Outcome, error) {
	v, claim := t.v, t.claim
	p, self := claim.Previous, v.node.Self
	chain := fencing.Chain{
		Local: func(ctx context.Context, _ fencing.Target) (fencing.Verdict, string, error) {
			return v.local.crumbs.witness().Prove(ctx, p.Node, p.Machine, p.Boot, p.Tree, seenOf(p.Leftover))
		},
		Logger: v.node.Logger,
	}
	target := fencing.Target{
		Service: v.name, Node: p.Node, Host: p.Host, Machine: p.Machine, Boot: p.Boot, Token: claim.PreviousToken,
		GuardianPid: p.GuardianPid, Address: p.Agent, SessionTimeout: time.Duration(p.SessionMs) * time.Millisecond,
		Session: p.Session, Tree: p.Tree, Seen: seenOf(p.Leftover), By: fencing.Claimant{Node: self.Node, Token: claim.Token},
	}
	var err error
	if chain.Grace, err = claim.Delay(ctx, v.conf.GraceDelay); err != nil {
		return fencing.Outcome{}, err
	}
	until, unlisted := v.node.Promises.Binding(v.name, election.Peer{Node: self.Node, Machine: self.Machine, Agent: v.view.agent}, p)
	if p.Leftover.Known {
		unlisted = leftoverError(p)
	}
	if chain.NoDelay = unlisted != nil; !chain.NoDelay {
		chain.Grace = max(chain.Grace, until-v.node.Machine.Now())
	}
	chain.Steps, chain.OnFailure = t.steps(p, chain.Grace)
	if p.Node == "" && len(chain.Steps) > 0 { // a method that does not know the node proves nothing
		if chain.Steps = nil; chain.OnFailure != fencing.Grace {
			return fencing.Outcome{}, fmt.Errorf("%w: the breadcrumb cannot be read, it is unknown whom to fence", fencing.ErrRefused)
		}
	}
	v.log.Info("fencing the former active", "node", p.Node, "token", claim.PreviousToken, "grace", chain.Grace)
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
	fenced, err := chain.Fence(ctx, target, claim.Since, confirmed)
	switch {
	case err != nil && errors.Is(err, fencing.ErrRefused) && unlisted != nil:
		v.mem.story.failed(unlisted.Error())
		return fenced, fmt.Errorf("%w: %w", err, unlisted)
	case err != nil:
		return fenced, err
	}
	if t.until = until; fenced.By != fencing.ByGrace { // a proof makes the promise needless
		t.until = 0
		return fenced, nil
	}
	return fenced, t.sitOut(ctx, confirmed)
}

// steps are the fencing methods of a service. Without configured ones, it asks the agent while the grace delay lasts.
func (t *fence) steps(former *election.BreadCrumb, grace time.Duration) ([]fencing.Step, fencing.OnFailure) {
	v := t.v
	ask := v.node.Agent.Ask
	if len(v.conf.Fence) > 0 || ask == nil || former.Agent == "" {
		return v.conf.Fence, fencing.OnFailure(v.conf.Fencing.OnFailure)
	}
	return []fencing.Step{{Method: agent.Method{Keys: ask.Keys, Dial: ask.Dial}, Timeout: max(grace, askAtLeast)}}, fencing.Grace
}

// askAtLeast is how long an agent may take to answer if there is no grace delay.
const askAtLeast = time.Second

// sitOut waits until this node's promise is over, or not needed any more.
func (t *fence) sitOut(ctx context.Context, confirmed <-chan struct{}) error {
	v, told := t.v, false
	for ctx.Err() == nil {
		left := t.until - v.node.Machine.Now()
		if left <= 0 {
			return nil
		}
		if !told {
			told = true
			v.log.Info("waiting for the end of a promise that this node gave", "left", left.Round(time.Millisecond))
		}
		timer := time.NewTimer(left)
		select {
		case <-timer.C:
		case <-confirmed:
			t.until = 0
		case <-ctx.Done():
		}
		timer.Stop()
	}
	return context.Cause(ctx)
}

// refusal is the event of a failed fencing.
func (t *fence) refusal(ctx context.Context, err error) role.Event {
	v := t.v
	switch {
	case ctx.Err() != nil:
		return t.over(ctx)
	case errors.Is(err, election.ErrLost):
		return role.Event{Kind: role.LockLost}
	case errors.Is(err, errPaused):
		return role.Event{Kind: role.PauseAsked}
	case errors.Is(err, errLeftHere): // no breadcrumb names those processes
		v.mem.story.failed(err.Error())
		v.log.Error("nothing is started", "error", err)
		return role.Event{Kind: role.FormerAlive}
	}
	v.log.Error("the former active could not be fenced: nothing is started; when you know that its child is dead, "+
		"run `understudy fence confirm`", "error", err)
	return role.Event{Kind: role.FormerAlive, Settle: true}
}

// tellFenced tells the hook the outcome.
func (t *fence) tellFenced(ctx context.Context, former *election.BreadCrumb, token int64, by fencing.Outcome, err error) {
	if former == nil || ctx.Err() != nil || errors.Is(err, election.ErrLost) || errors.Is(err, errPaused) {
		return
	}
	t.v.hooks.onFence(ctx, former, token, by, err)
}

// mayStart checks each start. P1 then holds even if the role machine were wrong.
func (t *fence) mayStart() error {
	if t.until > 0 && t.v.node.Machine.Now() < t.until {
		return errPromised
	}
	return nil
}

// errPromised says that this node must not start a child yet.
var errPromised = errors.New("this node has promised not to start it yet")

// errLeftHere says that this node must not start a child, whichever node was active last.
var errLeftHere = errors.New("processes of the service that a former supervisor of this machine left are alive")

// alone is the last look at this machine: since the service became a candidate, another supervisor here may have ended, and another
// node may have been active after that. P1.
func (t *fence) alone(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, endFirst)
	defer cancel()
	if l := t.v.node.Guard().Leftover(ctx, t.v.name, nil); l != nil {
		return fmt.Errorf("%w: %v", errLeftHere, l)
	}
	return nil
}

// seenAlive tells whether fencing was refused because the child was seen alive, here or on its machine.
func seenAlive(err error) bool {
	return errors.Is(err, fencing.ErrRefused) && (errors.Is(err, fencing.ErrAlive) || errors.Is(err, child.ErrUnproved))
}
