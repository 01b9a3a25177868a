package service

import (
	"errors"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"understudy/election"
	"understudy/supervisor/config"
	"understudy/supervisor/copies"
	"understudy/supervisor/unit"
)

// A verdict is up to two seconds old: what an operator has forced, and taken back since, is not followed.
func TestAForcedChoiceThatWasTakenBackIsNotFollowed(t *testing.T) {
	now := time.Now()
	for name, c := range map[string]struct {
		order  *election.Switchover
		leaves bool
	}{
		"it stands":      {&election.Switchover{To: "a", Force: true, Deadline: now.Add(time.Hour)}, false},
		"taken back":     {nil, true},
		"another's now":  {&election.Switchover{To: "b", Force: true, Deadline: now.Add(time.Hour)}, true},
		"it is too late": {&election.Switchover{To: "a", Force: true, Deadline: now}, true},
	} {
		v := &Service{node: &LocalNode{Self: election.Node{Node: "a"}}, log: hclog.NewNullLogger(), copy: &copyHere{}, inbox: &inbox{intents: intents{node: "a", news: newNews()}}}
		v.inbox.intents.learn(election.Intents{Control: election.Control{Switchover: c.order}})
		v.copy.noteVerdict(verdictOf{Verdict: copies.Verdict{Node: "a", Forced: true}, vacancy: 7})
		if got := (&candidacy{v: v}).leavesToOtherCopy(); got != c.leaves {
			t.Errorf("%s: it leaves the lock: %v", name, got)
		}
	}
}

// A comparison beside a breadcrumb is not the last one: the previous primary may have written on.
func TestItIsKnownWhetherTheCopiesWereComparedBesideABreadcrumb(t *testing.T) {
	for _, beside := range []bool{false, true} {
		v := &Service{node: &LocalNode{Self: election.Node{Node: "a"}}, log: hclog.NewNullLogger(), copy: &copyHere{}}
		v.copy.noteVerdict(verdictOf{Verdict: copies.Verdict{Node: "a"}, vacancy: 7, beside: beside})
		if c := (&candidacy{v: v}); c.leavesToOtherCopy() || c.beside != beside {
			t.Errorf("%v, want %v", c.beside, beside)
		}
	}
}

// A reason that comes soon after another one is logged later, if it still is the reason.
func TestTheNewestReasonForNoPromotionIsLoggedInTheEnd(t *testing.T) {
	c, began := &copyHere{}, time.Now()
	for _, step := range []struct {
		after time.Duration
		why   string
		logs  bool
	}{{0, "a", true}, {time.Second, "a", false}, {5 * time.Second, "b", false}, {6 * time.Second, "b", false}, {11 * time.Second, "b", true}, {time.Minute, "b", false}} {
		if got := c.warns(step.why, began.Add(step.after)); got != step.logs {
			t.Errorf("%q after %v is logged: %v", step.why, step.after, got)
		}
	}
}

// P1 of the data: a primary that has failed again is no follower of anybody. What is started anew is compared with the other copies first.
func TestAPrimaryThatHasFailedIsNotStartedWithoutAComparison(t *testing.T) {
	s := newStay(t.Context(), &Service{copy: &copyHere{}}, Session{})
	cfg := s.term.promotion.withPromotion(&s.term, unit.RunConfig{MayStart: func() error { return nil }})
	if err := cfg.MayStart(); !errors.Is(err, errNoCopy) || cfg.Promote != nil {
		t.Errorf("may be started: %v; is promoted then: %v", err, cfg.Promote != nil)
	}
}

// A node whose copy has not been able to follow for long is not healthy, and no target of a switchover.
func TestANodeWhoseCopyCannotFollowIsUnfit(t *testing.T) {
	v := made(t, Conf{}, nil)
	v.view.shown.role, v.view.unpromoted = election.RoleStandby, "1 of 2 copies have reported their position"
	for fails, want := range map[string]election.Member{
		"":                  {Health: election.HealthOK, Why: v.view.unpromoted},
		"role: exit code 1": {Health: election.HealthUnfit, Why: "role: exit code 1"},
	} {
		v.view.fails = func() string { return fails }
		if m := v.view.member(); m.Health != want.Health || m.Why != want.Why {
			t.Errorf("%q: %s, %s", fails, m.Health, m.Why)
		}
	}
}

// The history tells an operator's restart of a primary, after which its copy is promoted again as a rule, from a switchover.
func TestARestartOfAPrimaryIsNoSwitchoverToTheHistory(t *testing.T) {
	for why, want := range map[error]election.Reason{errSwitch: election.SwitchAsked, errRestart: election.RestartAsked, unit.ErrChanged: election.RestartAsked} {
		v := made(t, Conf{Service: config.Service{Replicated: &config.Replicated{}}}, nil)
		h := v.testStay(t.Context(), Session{}, nil)
		h.term.run.why = why
		if got := h.term.ended().Kind.Why(); got != want || !got.Planned() {
			t.Errorf("%v: %q", why, got)
		}
	}
}
