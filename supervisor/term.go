package supervisor

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"understudy/election"
	"understudy/fencing"
	"understudy/supervisor/child"
	"understudy/supervisor/unit"
)

// proofPatience is how long one attempt to prove a tree dead may take before it is logged and made again.
const proofPatience = 5 * time.Second

// partingPatience is how long a supervisor that is to stop goes on trying to prove a death.
const partingPatience = 30 * time.Second

// nobody is how a former active is known to be dead when it has left no breadcrumb.
const nobody = "no breadcrumb was left"

// term runs from a won lock to its end, straight down. P5, P1, P2 are the order of its calls.
func (v *service) term(ctx context.Context, t turn, claim *election.Claim, tree Tree) (action, error) {
	v.token = claim.Token
	v.on(lockWon, "token", claim.Token)
	entry := election.Activation{Token: claim.Token, Start: time.Now().UTC()}

	var over event
	former, began := claim.Previous, time.Now()
	fenced, err := v.fenceUnlessPaused(ctx, claim)
	if v.fenced = fenced.By; former != nil {
		v.showFenced(fenced, err, began)
		entry.FenceMs = time.Since(began).Milliseconds()
	}
	if p := claim.Previous; p != nil && seenAlive(err) { // before another node claims, which may not see it
		v.record(ctx, t.cand, p.Tree, err)
	}
	v.tellFenced(ctx, former, claim.PreviousToken, fenced, err)
	if err == nil {
		err = v.alone(ctx)
	}
	if err != nil {
		over = v.refusal(ctx, err)
	} else if !t.gate.Enter(ctx, gated{v}, claim) {
		over = ending(ctx)
	} else if over = v.arm(ctx, t.sess.Timeout(), tree); over == nothingYet {
		entry.Fenced = fenced.Story()
		v.on(formerDead, "token", claim.Token, "fenced", fenced.By)
		over = v.active(ctx, t, claim, tree, &entry)
	}

	return v.conclude(ctx, t, claim, tree, entry, over, err == nil)
}

// conclude ends a term in which the child may still be alive. lived tells that it came to be active.
func (v *service) conclude(
	ctx context.Context, t turn, claim *election.Claim, tree Tree, entry election.Activation, over event, lived bool,
) (action, error) {
	if over == handedOver {
		if v.handOver(claim, tree, entry) {
			return v.on(handedOver, "token", claim.Token), nil
		}
		over = stopAsked
	}
	v.on(over, "token", claim.Token)
	v.words = &lastWords{entry: entry, over: over}
	if err := v.end(ctx, t, tree); err != nil {
		v.on(treeAlive)
		return nothing, err // P2: what may be alive keeps its lock
	}
	v.on(treeDead)
	v.words.end = time.Now().UTC()
	if v.Once && over == stopAsked && v.process != nil {
		status := unit.ExitOf(v.process)
		v.finished = &status
	}
	// The context may have ended; giving back what is ours is bounded by the session.
	after := context.WithoutCancel(ctx)
	if t.over() { // nobody waits for it but this service's next turn
		v.unit.UndoBeside(after)
	} else {
		v.unit.UndoAll(after)
	}
	facts := v.reason(over.String())
	if lived {
		defer v.unit.Beside(after, "on_standby", v.Hooks.OnStandby, facts)
	}
	if err := v.giveBack(after, t, claim); err != nil {
		v.log.Warn("the lock could not be given back, it goes with its session", "service", v.name, "error", err)
		return nothing, err
	}
	do := v.on(lockReleased, "token", claim.Token)
	if do == rest {
		v.unit.Beside(after, "on_give_up", v.Hooks.OnGiveUp, facts)
	}
	v.finish(ctx, t, entry, over)
	return do, nil
}

// reason is what hooks are told of an end.
func (v *service) reason(why string) []string {
	return append(v.unit.Facts(v.token), "UNDERSTUDY_REASON="+why)
}

// tellFenced runs on_fence, beside what goes on.
func (v *service) tellFenced(ctx context.Context, former *election.BreadCrumb, token int64, by fencing.Outcome, err error) {
	if former == nil || ctx.Err() != nil || errors.Is(err, election.ErrLost) || errors.Is(err, errPaused) {
		return
	}
	result := "dead"
	if err != nil {
		result = "refused"
	}
	facts := append(v.unit.Facts(v.token),
		"UNDERSTUDY_FENCED_NODE="+former.Node, "UNDERSTUDY_FENCED_HOST="+former.Host, "UNDERSTUDY_FENCED_TOKEN="+strconv.FormatInt(token, 10),
		"UNDERSTUDY_FENCED_BY="+by.By, "UNDERSTUDY_FENCED_RESULT="+result, "UNDERSTUDY_FENCED_ATTEMPTS="+by.Told())
	v.unit.Beside(context.WithoutCancel(ctx), "on_fence", v.Hooks.OnFence, facts)
}

// end kills the tree, and returns nil only when it is proved dead and nothing can be started in it any more. While the
// lease lasts the lock is kept, and it goes on trying.
func (v *service) end(ctx context.Context, t turn, tree Tree) error {
	gaveUp := time.Now().Add(partingPatience)
	for {
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), proofPatience)
		go func() { // ends with bounded: others are to hear soon that no delay is a proof
			select {
			case <-t.sess.Ended():
				pause(bounded, buryFirst)
				cancel()
			case <-bounded.Done():
			}
		}()
		err := tree.End(bounded)
		cancel()
		if err == nil {
			if v.alive = ""; v.condition == unproved {
				v.condition, v.ill = working, ""
			}
			v.disengage()
			t.gate.Leave(gated{v})
			return nil
		}
		v.log.Error("the child's death is not proved, the lock is kept", "service", v.name, "error", err)
		v.stance.Store(stuck)
		v.testify(ctx, t.cand, idOf(tree), err)
		v.ails(unproved, v.alive)
		select {
		case <-t.sess.Ended():
		default:
			if !closed(t.leave) || time.Now().Before(gaveUp) {
				continue
			}
		}
		v.undead, v.grave = tree, t.epoch
		return fmt.Errorf("%s: %w: %w", v.name, errUndead, err)
	}
}

// over tells that the lease has ended, or that the lock is lost: what is left is killed, not asked.
func (t turn) over() bool { return closed(t.sess.Ended()) || closed(t.lost) }

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// fence makes sure that nobody else's child runs, and that the breadcrumb names us: P5.
func (v *service) fence(ctx context.Context, claim *election.Claim) (fencing.Outcome, error) {
	v.until = v.promises.Bound(v.name)
	fenced := fencing.Outcome{By: nobody}
	if claim.Previous == nil {
		if err := v.sitOut(ctx, nil); err != nil {
			return fenced, err
		}
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
		// P5: a delay that ended when somebody was just seen alive is none.
		if p := claim.Previous; p != nil && p.Leftover.Known && fenced.By == fencing.ByGrace {
			continue
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
		Local:  func(ctx context.Context, _ fencing.Target) (fencing.Verdict, string, error) { return v.knows(ctx, p) },
		Logger: v.log,
	}
	target := fencing.Target{
		Service: v.name, Node: p.Node, Host: p.Host, Machine: p.Machine, Boot: p.Boot, Token: claim.PreviousToken,
		GuardianPid: p.GuardianPid, Address: p.Agent, SessionTimeout: time.Duration(p.SessionMs) * time.Millisecond,
		Session: p.Session, Tree: p.Tree, Seen: seenOf(p.Leftover), By: fencing.Claimant{Node: v.node.Node, Token: claim.Token},
	}
	var err error
	if chain.Grace, err = claim.Delay(ctx, v.GraceDelay); err != nil {
		return fencing.Outcome{}, err
	}
	until, unlisted := v.binds(p)
	if p.Leftover.Known {
		unlisted = leftoverError(p)
	}
	if chain.NoDelay = unlisted != nil; !chain.NoDelay {
		chain.Grace = max(chain.Grace, until-v.machine.Now())
	}
	chain.Steps, chain.OnFailure = v.steps(p, chain.Grace)
	if p.Node == "" && len(chain.Steps) > 0 { // a method that is told nothing proves nothing
		if chain.Steps = nil; chain.OnFailure != fencing.Grace {
			return fencing.Outcome{}, fmt.Errorf("%w: the breadcrumb cannot be read, nobody knows whom to fence", fencing.ErrRefused)
		}
	}
	v.log.Info("fencing the former active", "service", v.name, "node", p.Node, "token", claim.PreviousToken, "grace", chain.Grace)
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
		v.failure = unlisted.Error()
		return fenced, fmt.Errorf("%w: %w", err, unlisted)
	case err != nil:
		return fenced, err
	}
	if v.until = until; fenced.By != fencing.ByGrace { // a proof, which no promise has to be kept for
		v.until = 0
		return fenced, nil
	}
	return fenced, v.sitOut(ctx, confirmed)
}

// knows tells what this machine knows by itself of a former active's child.
func (v *service) knows(ctx context.Context, p *election.BreadCrumb) (fencing.Verdict, string, error) {
	return v.witness().vouch(ctx, p.Node, p.Machine, p.Boot, p.Tree, seenOf(p.Leftover))
}

func (v *service) witness() witness {
	return witness{node: v.node.Node, host: child.Host{Machine: v.node.Machine, Boot: v.node.Boot}, end: v.machine.KillTree, look: v.machine.Outlasted}
}

// refusal tells what a failed fencing means.
func (v *service) refusal(ctx context.Context, err error) event {
	if ctx.Err() != nil {
		return ending(ctx)
	}
	if errors.Is(err, election.ErrLost) {
		return lockLost
	}
	if errors.Is(err, errPaused) {
		return servicePaused
	}
	if errors.Is(err, errBeside) { // which no breadcrumb tells of
		v.failure = err.Error()
		v.log.Error("nothing is started", "service", v.name, "error", err)
		return formerAlive
	}
	v.refused = true
	v.log.Error("the former active could not be fenced: nothing is started; when you know that its child is dead, "+
		"run `understudy fence confirm`", "service", v.name, "error", err)
	return formerAlive
}

// ending tells why a context has ended.
func ending(ctx context.Context) event {
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, election.ErrExpired):
		return sessionExpired
	case errors.Is(cause, election.ErrLeaseEnding), errors.Is(cause, election.ErrShortened), errors.Is(cause, election.ErrTorn), errors.Is(cause, errGuard):
		return leaseEnding
	case errors.Is(cause, election.ErrLost):
		return lockLost
	default:
		return stopAsked
	}
}

// finish closes the term's entry in the history.
func (v *service) finish(ctx context.Context, t turn, entry election.Activation, over event) {
	now := time.Now().UTC()
	words := v.words
	v.words = nil
	ctx = context.WithoutCancel(ctx)
	pause(ctx, settling) // whoever takes over comes first
	bounded, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	entry.End, entry.Reason = &now, over.String()
	if entry.Entry == "" { // a term too short to be recorded while it lasted, or none
		if entry.Fenced == "" {
			return
		}
		if _, err := t.cand.Record(bounded, entry, epitaph(entry.Fenced)); err != nil {
			v.log.Debug("the term is not in the history", "service", v.name, "error", err)
		}
		v.stayPut(bounded, t, v.Moves)
		return
	}
	if err := t.cand.Amend(bounded, entry.Entry, entry); err != nil {
		v.log.Debug("the end of the term is not in the history", "service", v.name, "error", err)
		v.words = words // the next session says it
	}
}
