package service

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"understudy/election"
	"understudy/supervisor/config"
)

// An order for this node's copy is carried out once, also if the session ends meanwhile, and answered. One that is taken back, that is for
// another node, or whose command has given up, is not.
func TestAnOrderForACopyIsAnsweredOnce(t *testing.T) {
	for name, c := range map[string]struct {
		node, do string
		late     bool
		want     string // its failure; "-": it is not answered
	}{
		"it fails":            {"a", "reclone", false, "there is no replicated.reclone in the config of this node"},
		"it is not known":     {"a", "dance", false, `this version does not know the order "dance"`},
		"it is too late":      {"a", "restart", true, errLateOrder.Error()},
		"for another node":    {"b", "reclone", false, "-"},
		"the copy is stopped": {"a", "restart", false, "-"},
	} {
		synctest.Test(t, func(t *testing.T) {
			v := made(t, Conf{Service: config.Service{Replicated: &config.Replicated{}}}, nil)
			v.copy.lasts, v.copy.cease = context.WithCancelCause(t.Context())
			o := election.CopyOrder{Order: election.Order{ID: "x", Node: c.node}, Do: c.do, Deadline: time.Now().Add(time.Minute)}
			if c.late {
				o.Deadline = time.Now()
			}
			var now election.Control
			written := 0
			amend := func(_ context.Context, change func(*election.Control) bool) error {
				if change(&now) {
					written++
				}
				v.inbox.intents.learn(election.Intents{Control: now})
				return nil
			}
			sessions := func(order *election.CopyOrder) {
				for range 2 {
					ctx, end := context.WithCancel(t.Context())
					now.Copy = order
					v.inbox.newSession()
					v.inbox.intents.learn(election.Intents{Control: now})
					go v.copy.obey(ctx, &v.inbox.intents, amend)
					synctest.Wait()
					end()
					synctest.Wait()
				}
			}
			sessions(&o)
			got, want := "-", 0
			if now.Copy.Failed != "" {
				got = now.Copy.Failed
			}
			if c.want != "-" {
				want = 1
			}
			if got != c.want || written != want {
				t.Errorf("%s: %q, want %q, written %d times", name, got, c.want, written)
			}
			if busy := v.copy.obeyed; c.want == "-" && c.node == "a" {
				sessions(nil)
				if synctest.Wait(); v.copy.obeyed != nil || !strings.Contains(busy.failed, "canceled") {
					t.Errorf("%s, taken back: %+v", name, busy)
				}
			}
			v.copy.close()
		})
	}
}

// Only what was asked is taken out of the znode.
func TestTheAnswerIsForTheOrderItself(t *testing.T) {
	for _, c := range []struct {
		now    *election.CopyOrder
		failed string
		want   *election.CopyOrder
		change bool
	}{
		{nil, "", nil, false},
		{&election.CopyOrder{Order: election.Order{ID: "y"}}, "", &election.CopyOrder{Order: election.Order{ID: "y"}}, false},
		{&election.CopyOrder{Order: election.Order{ID: "x"}}, "", nil, true},
		{&election.CopyOrder{Order: election.Order{ID: "x"}}, "no", &election.CopyOrder{Order: election.Order{ID: "x", Failed: "no"}}, true},
	} {
		now := election.Control{Copy: c.now}
		if changed := answerCopy(&now, "x", c.failed); changed != c.change || (now.Copy == nil) != (c.want == nil) || c.want != nil && *now.Copy != *c.want {
			t.Errorf("%+v: %v, %+v", c, changed, now.Copy)
		}
	}
}
