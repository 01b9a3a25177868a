package service

import (
	"context"
	"errors"
	"time"

	"understudy/election"
	"understudy/supervisor/service/role"
)

// outlasts is until when the programs may run on although the session has expired; 0: they have to end. Without a session no watchdog is
// armed for them, so where there is one they end. And a copy that was promoted in one session is not carried into the next one.
func (t *term) outlasts() time.Duration {
	if t.v.copy != nil || t.v.node.Watchdog != nil {
		return 0
	}
	return t.s.Gate.Outlasts(t.v.Term())
}

var (
	errUncovered = errors.New("the other nodes agreed for too short a time")
	errLostData  = errors.New("ZooKeeper has lost its data")
)

// reclaim continues a term that has outlasted its session. The programs run, and promises cover them.
func (t *stay) reclaim(ctx context.Context) role.Event {
	v, c := t.v, t.v.carried
	defer close(t.candidacy.decided)
	claim, err := t.candidacy.cand.Lapsed(c.Claim)
	if err != nil {
		t.drop(err)
		return role.Event{Kind: role.CannotResume}
	}
	v.carried = nil
	t.goesOn(claim, c)
	t.term.lived = true
	err = t.term.takeAgain(ctx, claim)
	if err == nil {
		t.s.Gate.Reclaimed(v.Term(), claim)
		v.log.Info("the previous session had expired, and no other node has claimed the lock: this node has it again, "+
			"and the program keeps running (failsafe)", "token", claim.Token)
		t.term.run.adopt = c.Run
		t.term.watch(ctx)
		return role.Event{Kind: role.Resumed}
	}
	c.Run.Discard()
	if errors.Is(err, election.ErrUnresolved) { // P1: nobody watches a lock that may be ours
		t.s.Stop(err)
		t.term.claim = &election.Claim{}
		v.log.Error("it is not known who has the lock, stopping the program", "error", err)
		return role.Event{Kind: role.CannotResume}
	}
	v.log.Warn("the previous session had expired, and the lock cannot be taken again: stopping the program", "why", err)
	return role.Event{Kind: role.Expired}
}

// takeAgain takes the lock for a term that has outlasted its session. P2: before that both guardians know that the programs belong to this
// session: whatever happens to this process, they close it only once those are dead. P1: until then its lease here is no longer than
// the promises.
func (t *term) takeAgain(ctx context.Context, claim *election.Claim) error {
	v := t.v
	until := t.s.Gate.Covered(v.Term())
	switch {
	case until == 0:
		return errUncovered
	case v.state.QuarantineDue:
		return errLostData
	}
	bounded, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), until-v.node.Machine.Now(), errUncovered)
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		if !errors.Is(context.Cause(ctx), ErrHandover) { // another image of this process takes over once it is decided
			cancel()
		}
	})()
	if err := t.tree.Move(bounded, t.s.Epoch, election.EncodeRelease(t.cand.Paths())); err != nil {
		return err
	}
	t.s.Moved()
	return t.cand.Reclaim(bounded, claim)
}
