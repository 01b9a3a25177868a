package service

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"understudy/election"
	"understudy/supervisor/child"
	"understudy/supervisor/config"
	"understudy/supervisor/host"
	"understudy/supervisor/service/role"
	"understudy/supervisor/unit"
)

// warmed is a warm service whose program nobody has started yet.
func warmed(t *testing.T) *Service {
	conf := config.DefaultService("program")
	conf.Warm = &config.Warm{Promote: config.Order{Exec: config.Command{"promote"}}}
	conf.Replicated = &config.Replicated{}
	return made(t, Conf{Service: conf}, func(n *LocalNode) { n.Logger = hclog.NewNullLogger() })
}

// Where an operator, or the config, keeps a node from being active, its program does not stand by either. A pause keeps nobody from standing by.
func TestAWarmProgramStandsByWhereItMayBePromoted(t *testing.T) {
	v := warmed(t)
	for _, c := range []struct {
		obstacle role.Obstacle
		stopped  bool
		says     string
	}{
		{role.Drained, false, "why"}, {role.NoObstacle, false, "its program does not run"}, {role.Ineligible, false, "why"}, {role.OrdersUnknown, false, "why"},
		{role.Paused, false, "its program does not run"}, {role.Paused, true, "why"}, {role.OrdersUnknown, false, "why"}, {role.CannotStart, false, "its program does not run"},
	} {
		v.copy.halt(c.obstacle, c.stopped, "why")
		if got := v.copy.Halted(); (got == "") != (c.says != "why") {
			t.Errorf("%v, stopped: %v: %q", c.obstacle, c.stopped, got)
		}
	}
	var none *copyHere
	none.halt(role.Drained, true, "why")
	if why, _ := none.cold(); why != "" || none.compared() || v.copy.compared() {
		t.Error("a plain service has a copy, or a warm one is compared")
	}
}

// A node whose program does not run may take the lock, and is no target of a switchover. One whose program starts waits for that.
func TestANodeWhoseWarmProgramDoesNotRunIsUnfit(t *testing.T) {
	v := warmed(t)
	if obstacle, _ := v.copy.obstacle(role.NoObstacle, ""); obstacle != role.NoObstacle || v.view.fails() == "" {
		t.Errorf("%v, %q", obstacle, v.view.fails())
	}
	if v.view.follows != nil {
		t.Error("it has data that clients may read")
	}
}

// Its program is started as one that stands by, whose promotion is checked as any start is: P1.
func TestAWarmProgramThatDoesNotRunIsStartedByItsTerm(t *testing.T) {
	v := warmed(t)
	s := newStay(t.Context(), v, Session{})
	may := errors.New("not now")
	cfg := s.term.promotion.withPromotion(&s.term, unit.RunConfig{Token: 7, MayStart: func() error { return may }})
	if !slices.Contains(cfg.Env, "UNDERSTUDY_ROLE=follower") || cfg.Adopt != nil || !errors.Is(cfg.MayStart(), may) {
		t.Errorf("%v, adopts %v, may start: %v", cfg.Env, cfg.Adopt, cfg.MayStart())
	}
	if err := cfg.Promote(context.Background(), host.Process(nil)); !errors.Is(err, may) {
		t.Errorf("it is promoted: %v", err)
	}
}

// A program that fails everywhere does not go round for ever where no node gives up: each start comes later.
func TestAWarmProgramThatFailsAgainStaysWhereNoNodeGivesUp(t *testing.T) {
	v := warmed(t)
	v.conf.Restart.GiveUpAfter = 0
	v.mem.restarts.cfg = config.Restart{Policy: config.RestartOnFailure, Delay: time.Second, MaxDelay: time.Minute, GiveUpAfter: 5, Within: time.Minute}
	r := v.testStay(t.Context(), Session{}, &endingTree{})
	r.term.run.why = &unit.Ended{Status: child.ExitStatus{Code: 1}}
	v.inbox.intents.learn(election.Intents{Control: election.Control{Paused: true}})
	if e := r.Judge(t.Context()); e.Kind != role.Again || r.term.run.delay != time.Second {
		t.Errorf("during a pause: %v after %v", e.Kind, r.term.run.delay)
	}
	v.inbox.intents.learn(election.Intents{})
	for _, delay := range []time.Duration{2 * time.Second, 4 * time.Second} {
		if e := r.Judge(t.Context()); e.Kind != role.Again || r.term.run.delay != delay {
			t.Errorf("%v after %v", e.Kind, r.term.run.delay)
		}
	}
}
