package service

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"understudy/election"
	"understudy/supervisor/config"
)

// A free lock is left to the node that an operator wants, or that is preferred; for longest by the node that is to be replaced.
func TestAFreeLockIsLeftToOthers(t *testing.T) {
	to := func(from, to string) *election.Switchover { return &election.Switchover{From: from, To: to} }
	for name, c := range map[string]struct {
		order    *election.Switchover
		fit      map[string]int
		priority int
		want     time.Duration
	}{
		"nobody is preferred":         {},
		"an operator wants this node": {order: to("", "a"), fit: map[string]int{"b": 2}},
		"an operator wants another":   {order: to("", "b"), want: graceForPreferred},
		"an operator wants it away":   {order: to("a", ""), want: graceForAny},
		"another is preferred":        {fit: map[string]int{"b": 2}, priority: 1, want: graceForPreferred},
		"this one is":                 {fit: map[string]int{"b": 2}, priority: 3},
	} {
		p := preference{node: "a", conf: &Conf{Service: config.Service{Priority: c.priority}}}
		w := election.Intents{Control: election.Control{Switchover: c.order}, Preferred: c.fit}
		if got := p.graceForOthers(time.Now(), w); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// The service goes to a preferred node that has been fit for a while: for longer, if it did not take a free lock before.
func TestAPreferredNodeIsWaitedFor(t *testing.T) {
	now := time.Unix(1000, 0)
	w := election.Intents{Preferred: map[string]int{"b": 2}}
	p := preference{node: "a", conf: &Conf{Service: config.Service{Priority: 1, Failback: true}}}
	if after, there := p.preferredBack(now, w); !there || after != settledIn {
		t.Errorf("%v, %v", after, there)
	}
	for _, longer := range []time.Duration{1, 2, 4, 8} {
		p.absences.gaveUp(now, time.Minute)
		if after, there := p.preferredBack(now, w); !there || after != longer*time.Minute {
			t.Errorf("it did not take a free lock: %v, %v, want %v", after, there, longer*time.Minute)
		}
	}
	if _, there := p.preferredBack(now, election.Intents{}); there {
		t.Error("though nobody is preferred")
	}
	if after, there := p.preferredBack(now, w); !there || after != settledIn {
		t.Errorf("it was away and came back: %v, %v", after, there)
	}
	w.Control.Paused = true
	if _, there := p.preferredBack(now, w); there {
		t.Error("though the service is paused")
	}
}

// One that did not take a free lock may have lost power with a lease that is longer than this node's own: its znode lasts twice as long as that.
func TestAPreferredNodeCountsAsGoneForAsLongAsItsSessionMayLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zk := newEnsemble(t)
		defer zk.server.Close()
		longest := 10 * zk.timeout
		zk.seen = longest
		zk.session(func(ctx context.Context, s *election.Session) error {
			v := made(t, Conf{Service: config.Service{Priority: 1, Failback: true}}, nil)
			stay := v.testStay(ctx, Session{Session: s}, nil)
			stay.candidacy.intents = election.Intents{Preferred: map[string]int{"preferred": 2}}
			for stay.candidacy.leavesToOther() {
				time.Sleep(graceForPreferred)
			}
			if after, there := v.mem.preference.preferredBack(time.Now(), stay.candidacy.intents); !there || after != 2*longest {
				t.Errorf("%v, %v, and the longest lease is %v", after, there, longest)
			}
			return nil
		})
	})
}
