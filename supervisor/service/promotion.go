package service

import (
	"context"
	"errors"
	"time"

	"understudy/election"
	"understudy/supervisor/child"
	"understudy/supervisor/host"
	"understudy/supervisor/replica"
	"understudy/supervisor/service/role"
	"understudy/supervisor/unit"
)

// A planned end of a term may leave its copy running, as a follower: demote makes it one. P1: the copy is the primary until demote has
// succeeded and the copy says that it is a follower. P2: the lock is given back once that holds, what promoted and demoted it is proved
// dead, with all that it forked, and the copy's tree ends with its supervisor only. If any of that fails, the tree is ended as ever.

// promotion is a term's part of a replicated service: it promotes this node's copy, and may leave it behind as a follower.
type promotion struct {
	mustCompareAgain bool             // programs of another term may have run since the copies were compared
	copyNotTaken     bool             // the term has not taken the copy's tree yet: nothing of it runs in there
	promoteTree      host.Tree        // what promotes and demotes a copy that may outlive the term; nil: there is none
	counted          []string         // on which nodes copies acknowledge its writes; nil: it is not told
	run              *unit.CarriedRun // the follower that is about to be promoted
	demoted          *unit.CarriedRun // the programs of a copy that is a follower again
}

// takeCopy takes the copy over, for good. P1: from here on its tree falls with the session's lease, and both guardians know that.
func (p *promotion) takeCopy(ctx context.Context, t *term) role.Event {
	v := t.v
	if v.copy == nil {
		return role.Event{Kind: role.Armed}
	}
	p.copyNotTaken = false
	holding, enough := linger(ctx, ctx.Done(), holdPatience) // what is not given to the term cannot be asked to end
	defer enough()
	run, err := v.copy.Hold(holding, t.tree)
	p.run = run
	if err != nil && v.copy.warm && v.copy.Holds(t.tree) { // it is started anew, once nothing of it is left
		err = t.tree.Kill(ctx)
	}
	if err == nil {
		err = ctx.Err()
	}
	if err == nil {
		err = t.tree.Move(ctx, t.s.Epoch, election.EncodeRelease(t.cand.Paths()))
	}
	if err == nil && v.conf.Demotes().Given() {
		err = p.makeOrders(ctx, t)
	}
	if err == nil && !v.copy.warm {
		err = v.copy.Promotion(t.claim.Token).Note(t.birth.Ctime)
	}
	if err == nil && !v.copy.warm {
		err = p.recordPromotion(ctx, t)
	}
	switch {
	case err == nil:
		return role.Event{Kind: role.Armed}
	case ctx.Err() != nil:
		return t.over(ctx)
	case errors.Is(err, election.ErrLost):
		return role.Event{Kind: role.LockLost}
	case errors.Is(err, child.ErrLeaseEnded), errors.Is(err, child.ErrGuardiansLost):
		return role.Event{Kind: role.LeaseOver}
	}
	v.log.Error("this node's copy cannot be promoted", "error", err)
	v.mem.lastTerm.failure = err.Error()
	return role.Event{Kind: role.NoCopy}
}

// recordPromotion notes the promotion, and which copies acknowledge what the primary writes.
func (p *promotion) recordPromotion(ctx context.Context, t *term) error {
	live := len(t.v.conf.Replicated.Copies) > 0
	now, err := t.claim.Promotes(ctx, t.v.conf.copyAddress(t.v.node.Self.Host), live)
	if live {
		p.counted = besides(now.Live, t.v.node.Self.Node)
	}
	return err
}

// runToStop makes a run of a copy that is not promoted after all, for Stop: killed, it may come back with less than it has told the others.
func (p *promotion) runToStop(ctx context.Context, t *stay) {
	v, run := t.v, p.run
	if run == nil {
		return
	}
	p.run = nil
	programs := v.unit.Start(context.WithoutCancel(ctx), t.term.runConfig(run, nil))
	programs.End(errNoCopy)
	_ = programs.Wait()
	t.term.run.programs = programs
	v.step.Store(&step{atMost: t.bound(role.Stopping)})
}

// withPromotion adds to a run what promotes the copy.
func (p *promotion) withPromotion(t *term, cfg unit.RunConfig) unit.RunConfig {
	v, run := t.v, p.run
	if v.copy == nil {
		return cfg
	}
	if cfg.Adopt != nil { // a previous image of this process has promoted it
		cfg.Attend = t.attends(v.copy.Promotion(cfg.Token).Attend)
		return cfg
	}
	p.run = nil
	cfg.Adopt = run
	if run == nil {
		cfg.Env = replica.Active{}.Environ(false)
	}
	promote := v.copy.Promotion(cfg.Token).Promote(p.promoteTree, p.counted)
	if run != nil || v.copy.warm {
		cfg.Promote = func(ctx context.Context, first host.Process) error {
			if err := cfg.MayStart(); err != nil { // P1: check again, whatever the caller knew when the run began
				return err
			}
			return promote(ctx, first)
		}
		cfg.Attend = t.attends(v.copy.Promotion(cfg.Token).Attend)
	} else { // what is started anew is no follower of anybody
		cfg.MayStart = func() error { return errNoCopy }
	}
	return cfg
}

var (
	errNoCopy = errors.New("a copy is promoted only after it has been compared with the others")
	errStands = errors.New("an address of the service is not removed yet")
)

// blockStarts makes sure, before the tree of a term is ended, that nothing is started in it any more.
func (p *promotion) blockStarts(ctx context.Context, t *term) {
	c := t.v.copy
	if c == nil {
		return
	}
	c.primary(0)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), holdPatience)
	defer cancel()
	if run, _ := c.Hold(ctx, t.tree); run != nil {
		run.Discard()
	}
	if p.run != nil {
		p.run.Discard()
		p.run = nil
	}
}

// holdPatience bounds a wait for commands of a follower, which are killed.
const holdPatience = time.Second

// makeOrders makes the container of what promotes and demotes the copy.
func (p *promotion) makeOrders(ctx context.Context, t *term) error {
	promoteTree, err := t.v.node.Guard().NewTree(ctx, t.s.Epoch, t.v.name+"/orders", election.EncodeRelease(t.cand.Paths()))
	if err == nil {
		p.promoteTree = promoteTree
		t.v.trees.newest().with(promoteTree)
	}
	return err
}

// demote reports whether the copy has become a follower whose programs run on.
func (p *promotion) demote(ctx context.Context, t *term) bool {
	v := t.v
	if p.promoteTree == nil || !v.conf.Demotes().Given() || !errors.Is(t.run.why, errSwitch) && !errors.Is(t.run.why, errPreferred) {
		return false
	}
	err, began := errStands, time.Now()
	if t.run.programs.Withdraw(ctx, v.conf.Service, t.cut()) { // no client may reach a follower through an address
		err = v.copy.Promotion(t.claim.Token).Demote(ctx, t.run.programs.First(), p.promoteTree)
	}
	if err != nil {
		v.log.Warn("the primary cannot be demoted, stopping it", "error", err)
		return false
	}
	run, ok := t.run.programs.HandOver()
	p.demoted = run
	if ok {
		t.entry.noteStopped(time.Time{}, began) // clients may have waited since
	}
	return ok
}

// returnCopy gives a demoted copy back, with its tree. It reports false if the tree has to be ended.
func (p *promotion) returnCopy(ctx context.Context, t *term) bool {
	v, run := t.v, p.demoted
	p.demoted = nil
	if run == nil {
		return false
	}
	v.copy.primary(0)
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), proofPatience)
	defer cancel()
	t.tree.ReportUndone(true) // Withdraw has undone all
	err := v.copy.Return(bounded, t.tree, run)
	if err != nil {
		run.Discard()
		v.log.Warn("the copy was demoted, and is stopped all the same", "error", err)
		return false
	}
	t.noteDead()
	return true
}

// endPromoteTree ends what promoted and demoted the copy, with all that it forked.
func (p *promotion) endPromoteTree(ctx context.Context) error {
	if p.promoteTree == nil {
		return nil
	}
	return p.promoteTree.End(ctx)
}
