package service

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"understudy/election"
	"understudy/supervisor/config"
	"understudy/supervisor/copies"
	"understudy/supervisor/service/role"
)

// After a fencing the copy is taken only if it still is the best one. Whatever the outcome, nothing is asked any more.
func TestWhoHasFencedComparesTheCopiesOnceMore(t *testing.T) {
	newer := copies.Verdict{Node: "b"}
	for name, c := range map[string]struct {
		fenced  bool
		verdict *copies.Verdict // nil: there is none
		want    role.Kind
		takes   time.Duration
	}{
		"nobody was fenced":        {false, &newer, role.Armed, 0},
		"it is still the best one": {true, &copies.Verdict{Node: "a"}, role.Armed, time.Second},
		"by an operator's choice":  {true, &copies.Verdict{Node: "a", Forced: true}, role.Armed, time.Second},
		"another one is newer":     {true, &newer, role.Behind, time.Second},
		"another one may be":       {true, &copies.Verdict{Why: "1 of 2 copies have reported their position"}, role.Behind, time.Second},
		"the lock is lost":         {true, &copies.Verdict{}, role.LockLost, time.Second},
		"nothing comes":            {true, nil, role.Behind, askLongest},
	} {
		synctest.Test(t, func(t *testing.T) {
			v := made(t, Conf{Service: config.Service{Replicated: &config.Replicated{}}}, nil)
			h := v.testStay(t.Context(), Session{}, nil)
			h.term = term{claim: &election.Claim{Token: 7}, fenced: c.fenced}
			if c.verdict != nil {
				time.AfterFunc(time.Second, func() {
					v.copy.answer(6, copies.Verdict{Node: "a"}) // to another term
					v.copy.answer(7, *c.verdict)
				})
			}
			began := time.Now()
			if got := h.compareAgain(t.Context()); got.Kind != c.want || time.Since(began) != c.takes || v.copy.asks() != 0 {
				t.Errorf("%s: %v after %v, want %v after %v; asks %d", name, got.Kind, time.Since(began), c.want, c.takes, v.copy.asks())
			}
			time.Sleep(time.Minute)
		})
	}
}

// Nothing was started in a copy's tree before the term has taken it: the lock is given back, and the follower runs on.
func TestATermThatHasNotTakenItsCopyLeavesItRunning(t *testing.T) {
	for _, took := range []bool{false, true} {
		var log strings.Builder
		v := made(t, Conf{Service: config.Service{Replicated: &config.Replicated{}}}, func(n *Node) { n.Logger = hclog.New(&hclog.LoggerOptions{Output: &log}) })
		sess, tree := &election.Session{}, &grave{}
		h := v.testStay(t.Context(), Session{Session: sess, Gate: gateOf(sess)}, tree)
		h.term = term{claim: &election.Claim{Token: 7}, took: took}
		if got := h.Prove(context.Background()); got.Kind != role.Proved || (tree.ended > 0) != took {
			t.Errorf("taken: %v: %v, the tree was ended %d times (%s)", took, got.Kind, tree.ended, log.String())
		}
	}
}
