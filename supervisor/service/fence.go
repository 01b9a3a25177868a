package service

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"understudy/election"
	"understudy/fencing"
	"understudy/fencing/agent"
	"understudy/supervisor/child/box"
	"understudy/supervisor/service/role"
)

// errPaused says that nobody may be promoted.
var errPaused = errors.New("the service is paused")

// Fence makes sure that no other node's child runs, and that the breadcrumb names us: P5.
func (t *stay) Fence(ctx context.Context) role.Event {
	v := t.v
	previous, token, began := t.term.claim.Previous, t.term.claim.PreviousToken, time.Now()
	v.mem.lastTerm.failure = ""
	fenced, err := t.term.fenceUnlessPaused(ctx)
	t.term.promotion.mustCompareAgain = t.candidacy.beside || previous != nil || fenced.By != string(election.NoBreadcrumb)
	told := fenced
	told.By = v.inbox.intents.confirmed(fenced.By)
	v.mem.lastTerm.fenced = told.By
	t.term.entry.proof, t.term.entry.previous = election.Proof(told.Story()), t.term.claim.PreviousEnding(previous)
	if previous != nil {
		if !errors.Is(err, errPaused) { // else the fencing had no outcome
			by := fenced.By
			if err != nil {
				by = ""
			}
			v.node.Observer.Fenced(v.name, by, time.Since(began))
		}
		t.term.entry.FenceMs = time.Since(began).Milliseconds()
	}
	if p := t.term.claim.Previous; p != nil && seenAlive(err) { // before another node, which may not see it, claims
		if left, ok := errors.AsType[*fencing.NotUndone](err); ok {
			v.breadcrumb.noteNotUndone(ctx, t.candidacy.cand, p.Tree, left.Names)
		} else {
			v.breadcrumb.noteAlive(ctx, t.candidacy.cand, p.Tree, err)
		}
	}
	t.candidacy.runFenceHook(ctx, previous, token, fenced, err)
	if err == nil {
		err = t.candidacy.alone(ctx)
	}
	if err != nil {
		return t.term.refusal(ctx, err)
	}
	return role.Event{Kind: role.PreviousDead}
}

// fenceUnlessPaused fences the node that the breadcrumb names, and gives up if the service is paused meanwhile.
func (t *term) fenceUnlessPaused(ctx context.Context) (fencing.Outcome, error) {
	v := t.v
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	woken := false
	var wg sync.WaitGroup
	wg.Go(func() {
		for !v.inbox.intents.control().Paused { // it may be known already
			select {
			case <-v.inbox.news:
				woken = true
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
	if woken {
		v.inbox.news.wake() // the next action has not seen the pause
	}
	return fenced, err
}

func (t *term) ensureDead(ctx context.Context) (fencing.Outcome, error) {
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
			fenced, err = t.fenceOne(ctx)
			if errors.Is(err, election.ErrCrumbChanged) {
				continue
			} else if err != nil {
				return fenced, err
			}
		}
		// P5: a delay proves nothing if its node was seen alive meanwhile, or has sent heartbeats.
		if p := claim.Previous; p != nil && fenced.By == fencing.ByGrace {
			silent, err := t.silent(ctx)
			if err != nil {
				return fenced, err
			}
			if !silent || undelayed(p) != nil {
				continue
			}
		}
		err := claim.Inscribe(ctx)
		if !errors.Is(err, election.ErrCrumbChanged) {
			return fenced, err
		}
	}
}

// fenceOne fences the node that the breadcrumb names now. Meanwhile it watches whether we lose the lock, and whether the breadcrumb goes.
func (t *term) fenceOne(ctx context.Context) (fenced fencing.Outcome, err error) {
	v, claim := t.v, t.claim
	p, token, self := claim.Previous, claim.PreviousToken, v.node.Self // the claim's own may change meanwhile
	chain := fencing.Chain{
		Local:  v.breadcrumb.witness().Prove,
		Logger: v.node.Logger,
	}
	target := v.breadcrumb.target(p, token)
	target.By = fencing.Claimant{Node: self.Node, Token: claim.Token}
	chain.Grace, err = claim.Delay(ctx, v.conf.GraceDelay)
	if err != nil {
		return fencing.Outcome{}, err
	}
	until, unlisted := t.delay(&chain, p)
	chain.Steps, chain.OnFailure = t.steps(p, chain.Grace)
	if p.Node == "" && len(chain.Steps) > 0 { // a method that does not know the node proves nothing
		chain.Steps = nil
		if chain.OnFailure != fencing.Grace {
			return fencing.Outcome{}, fmt.Errorf(
				"%w: the record of the previous active node cannot be read, so it is unknown which node to fence", fencing.ErrRefused)
		}
	}
	v.log.Info(MomentFencing, "node", p.Node, "token", token, "grace", chain.Grace)
	ctx, cancel := context.WithCancelCause(ctx)
	confirmed := make(chan struct{})
	var watching sync.WaitGroup
	var seen error // how the watching ended
	watching.Go(func() {
		if seen = claim.Confirmed(ctx); seen != nil {
			cancel(seen)
			return
		}
		close(confirmed)
	})
	defer func() {
		cancel(nil)
		watching.Wait()
		if errors.Is(seen, election.ErrCrumbChanged) { // P5: the outcome is of what the breadcrumb said before
			fenced, err, v.mem.lastTerm.failure = fencing.Outcome{}, seen, ""
		}
	}()
	fenced, err = chain.Fence(ctx, target, claim.Since, confirmed)
	switch {
	case err != nil && errors.Is(err, fencing.ErrRefused):
		v.mem.lastTerm.failure = strings.ReplaceAll(strings.TrimSpace(fenced.Told()), "\n", "; ")
		if unlisted != nil {
			v.mem.lastTerm.failure = unlisted.Error()
			err = fmt.Errorf("%w: %w", err, unlisted)
		}
		return fenced, err
	case err != nil:
		return fenced, err
	}
	t.until = t.boundAfter(fenced, until, token)
	if fenced.By != fencing.ByGrace {
		return fenced, t.sitOut(ctx, nil)
	}
	return fenced, t.sitOut(ctx, confirmed)
}

// silent reports whether the grace delay has not grown since it began, and whether that is proved.
func (t *term) silent(ctx context.Context) (bool, error) {
	delay, err := t.claim.Delay(ctx, t.v.conf.GraceDelay)
	if err != nil || time.Since(t.claim.Since) < delay {
		return false, err
	}
	return t.claim.Silent(ctx)
}

// delay has the chain wait as long as this node has promised not to start the service, too. unlisted is why no delay proves anything.
func (c *candidacy) delay(chain *fencing.Chain, p *election.BreadCrumb) (until time.Duration, unlisted error) {
	self := c.v.node.Self
	until, unlisted = c.v.node.Promises.Binding(c.v.name, election.Peer{Node: self.Node, Machine: self.Machine, Agent: c.v.view.agent}, p)
	if err := undelayed(p); err != nil {
		unlisted = err
	}
	chain.NoDelay = unlisted != nil
	if !chain.NoDelay {
		chain.Grace = max(chain.Grace, until-c.v.node.Machine.Now())
	}
	return until, unlisted
}

// boundAfter is until when a promise forbids a start. A proof makes the promise to that term needless, and no other.
func (c *candidacy) boundAfter(fenced fencing.Outcome, until time.Duration, token int64) time.Duration {
	if fenced.By == fencing.ByGrace {
		return until
	}
	return c.v.node.Promises.BoundBesides(c.v.name, token)
}

// steps are the fencing methods of a service. Without configured ones, it asks the agent while the grace delay lasts.
func (c *candidacy) steps(previous *election.BreadCrumb, grace time.Duration) ([]fencing.Step, fencing.OnFailure) {
	ask := c.v.node.AskAgent
	if len(c.v.conf.Fence) > 0 || ask == nil || previous.Agent == "" {
		return c.v.conf.Fence, fencing.OnFailure(c.v.conf.Fencing.OnFailure)
	}
	return []fencing.Step{{Method: agent.Method{Keys: ask.Keys, Dial: ask.Dial}, Timeout: max(grace, askAtLeast)}}, fencing.Grace
}

// askAtLeast is how long an agent may take to answer if there is no grace delay.
const askAtLeast = time.Second

// sitOut waits until this node's promise is over, or not needed any more.
func (t *term) sitOut(ctx context.Context, confirmed <-chan struct{}) error {
	v, told := t.v, false
	for ctx.Err() == nil {
		left := t.until - v.node.Machine.Now()
		if left <= 0 {
			return nil
		}
		if !told {
			told = true
			v.log.Info("this node agreed not to start it: waiting for the end of that time", "left", left.Round(time.Millisecond))
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
func (t *term) refusal(ctx context.Context, err error) role.Event {
	v := t.v
	switch {
	case ctx.Err() != nil:
		return t.over(ctx)
	case errors.Is(err, election.ErrLost):
		return role.Event{Kind: role.LockLost}
	case errors.Is(err, errPaused):
		return role.Event{Kind: role.PauseAsked}
	case errors.Is(err, errLeftHere): // no breadcrumb names those processes
		v.mem.lastTerm.failure = err.Error()
		v.log.Error("nothing is started", "error", err)
		return role.Event{Kind: role.PreviousAlive}
	case !errors.Is(err, fencing.ErrRefused): // such as a record that ZooKeeper does not take
		v.mem.lastTerm.failure = err.Error()
	}
	v.log.Error("takeover blocked: the previous node's program is not proved dead, and nothing is started; "+
		"`understudy status` gives what to do", "error", err)
	return role.Event{Kind: role.PreviousAlive, BackOffUntilProof: true}
}

// runFenceHook tells the hook the outcome.
func (c *candidacy) runFenceHook(ctx context.Context, previous *election.BreadCrumb, token int64, by fencing.Outcome, err error) {
	if previous == nil || ctx.Err() != nil || errors.Is(err, election.ErrLost) || errors.Is(err, errPaused) {
		return
	}
	result := "dead"
	if err != nil {
		result = "refused"
	}
	c.v.runHook(ctx, "on_fence", c.v.conf.Hooks.OnFence, "",
		"UNDERSTUDY_FENCED_NODE="+previous.Node, "UNDERSTUDY_FENCED_HOST="+previous.Host,
		"UNDERSTUDY_FENCED_TOKEN="+strconv.FormatInt(token, 10),
		"UNDERSTUDY_FENCED_BY="+by.By, "UNDERSTUDY_FENCED_RESULT="+result, "UNDERSTUDY_FENCED_ATTEMPTS="+by.Told())
}

// mayStart checks each start. P1 then holds even if the role machine were wrong.
func (t *term) mayStart() error {
	if t.until > 0 && t.v.node.Machine.Now() < t.until {
		return errPromised
	}
	return nil
}

// errPromised says that this node must not start a child yet.
var errPromised = errors.New("this node agreed not to start it yet")

// errLeftHere says that this node must not start a child, whichever node was active last.
var errLeftHere = errors.New("processes of the service that a previous supervisor of this host left are alive")

// alone is the last look at this machine: since the service became a candidate, another supervisor here may have ended, and another
// node may have been active after that. P1.
func (c *candidacy) alone(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, endFirst)
	defer cancel()
	if l := c.v.node.Guard().Leftover(ctx, c.v.name, nil); l != nil {
		return fmt.Errorf("%w: %v", errLeftHere, l)
	}
	return nil
}

// seenAlive tells whether fencing was refused because the child was seen alive, here or on its machine.
func seenAlive(err error) bool {
	return errors.Is(err, fencing.ErrRefused) && (errors.Is(err, fencing.ErrAlive) || errors.Is(err, box.ErrUnproved))
}
