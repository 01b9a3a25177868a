package service

import (
	"context"
	"testing"
	"testing/synctest"

	"understudy/election"
	"understudy/supervisor/service/role"
)

func TestPatienceRunsOutOnlyBeforeTheLockIsClaimed(t *testing.T) {
	const late, tried, claim, failed = "late", "tried", "claim", "failed"
	for name, c := range map[string]struct {
		once  bool
		steps []string
		over  bool
		may   bool // the last claim was allowed
	}{
		"while it stands by":           {steps: []string{"standby", late}, over: true},
		"not before its time":          {steps: []string{"standby", tried, claim}, may: true},
		"not with a claim under way":   {steps: []string{claim, late, "fencing"}, may: true},
		"not while it is active":       {steps: []string{claim, "fencing", "active", late}, may: true},
		"not after it was active":      {steps: []string{claim, "fencing", "active", "standby", late, claim}, may: true},
		"when another was quicker":     {steps: []string{claim, late, "standby", claim}, over: true},
		"with the first lock":          {once: true, steps: []string{"standby", tried, claim}, over: true},
		"not with a lock that is ours": {once: true, steps: []string{claim, "fencing", "active", tried}, may: true},
		"when the fencing failed":      {once: true, steps: []string{claim, "fencing", failed}, over: true, may: true},
		"not when the fencing failed":  {steps: []string{claim, "fencing", failed}, may: true},
	} {
		t.Run(name, func(t *testing.T) {
			ends, may := 0, false
			p := NewPatience(c.once, func() { ends++ })
			for _, step := range c.steps {
				switch step {
				case late:
					p.Late()
				case tried:
					p.tried()
				case claim:
					may = p.claim()
				default:
					p.moved(election.Role(step))
				}
			}
			if p.Over() != c.over || (ends == 1) != c.over || may != c.may {
				t.Errorf("over: %v, %d ends, may claim: %v", p.Over(), ends, may)
			}
		})
	}
}

// The command has said that it did not get the lock: it takes none that becomes free at the same moment. One that is taken in time keeps it
// waiting.
func TestNoLockIsTakenAfterTheTimeToWait(t *testing.T) {
	for name, late := range map[string]bool{"in time": false, "late": true} {
		synctest.Test(t, func(t *testing.T) {
			zk, ended := newEnsemble(t), false
			defer zk.server.Close()
			patience := NewPatience(false, func() { ended = true })
			v := made(t, Conf{Wait: patience}, nil)
			zk.session(func(ctx context.Context, s *election.Session) (err error) {
				stay := v.testStay(ctx, Session{Session: s, Gate: gateOf(s)}, &endingTree{})
				if stay.candidacy.cand, _, err = s.NewCandidate(ctx, "db", election.Race); err != nil {
					return err
				}
				if stay.candidacy.opening, err = stay.candidacy.cand.Wait(ctx); err != nil {
					return err
				}
				want := role.Won
				if late {
					patience.Late()
					want = role.StayOver
				}
				if e := stay.Claim(ctx); e.Kind != want {
					t.Errorf("%s: %v", name, e.Kind)
				}
				if patience.Late(); ended != late || patience.Over() != late {
					t.Errorf("%s: ended %v, over %v", name, ended, patience.Over())
				}
				return stay.candidacy.cand.Leave(ctx)
			})
		})
	}
}
