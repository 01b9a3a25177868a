package service

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-hclog"

	"understudy/election"
)

// known are the intents of a service on node a, for which operators have written this.
func known(c election.Control) *intents {
	n := &intents{node: "a", log: hclog.NewNullLogger(), news: newNews()}
	n.learn(election.Intents{Control: c})
	return n
}

// An order is for one activation, and is carried out once; a switchover stands until the lock has gone.
func TestAnOrderIsCarriedOutOnce(t *testing.T) {
	errand := func(token int64) *election.Order { return &election.Order{ID: "1", Token: token} }
	for name, c := range map[string]struct {
		control     election.Control
		first, next order
	}{
		"a restart":            {election.Control{Restart: errand(7)}, orderRestart, orderNone},
		"a reload":             {election.Control{Reload: errand(7)}, orderReload, orderNone},
		"a switchover":         {election.Control{Switchover: &election.Switchover{Order: *errand(7)}}, orderSwitchover, orderSwitchover},
		"one that is paused":   {election.Control{Paused: true, Switchover: &election.Switchover{Order: *errand(7)}}, orderNone, orderNone},
		"stopped":              {election.Control{Paused: true, Stopped: true, Restart: errand(7)}, orderStop, orderStop},
		"for a previous term":  {election.Control{Restart: errand(6), Reload: errand(6)}, orderNone, orderNone},
		"a reload, restarting": {election.Control{Restart: errand(7), Reload: errand(7)}, orderRestart, orderReload},
	} {
		n := known(c.control)
		if first, next := n.ordered(7), n.ordered(7); first != c.first || next != c.next {
			t.Errorf("%s: %v, then %v", name, first, next)
		}
	}
}

// A pause that a stop has interrupted is restored once the service runs again, and not while it is stopped, paused or switched over.
func TestAPauseComesBackAfterTheStart(t *testing.T) {
	since := time.Now()
	before := &election.Pause{By: "ann", Why: "change 4711", Since: &since}
	paused := election.Control{Paused: true, By: "ann", Why: "change 4711", Since: &since}
	for name, c := range map[string]struct{ now, want election.Control }{
		"started":               {election.Control{By: "bob", Before: before}, paused},
		"an earlier switchover": {election.Control{Before: before, Switchover: &election.Switchover{Order: election.Order{ID: "1", Token: 6}}}, paused},
		"stopped":               {election.Control{Paused: true, Stopped: true, Before: before}, election.Control{Paused: true, Stopped: true, Before: before}},
		"a switchover": {election.Control{Before: before, Switchover: &election.Switchover{Order: election.Order{ID: "1", Token: 7}}},
			election.Control{Before: before, Switchover: &election.Switchover{Order: election.Order{ID: "1", Token: 7}}}},
	} {
		n, got := known(c.now), c.now
		changed := n.answer(7)(&got)
		if diff := cmp.Diff(c.want, got); diff != "" || changed != (c.want.Before == nil) || n.late(7) != changed {
			t.Errorf("%s: changed %v, late %v: %s", name, changed, n.late(7), diff)
		}
	}
}

// A copy is promoted whatever data it has only if that is forced, and not for a command that nobody waits for any more.
func TestAChoiceIsForcedAsLongAsItsCommandWaits(t *testing.T) {
	now := time.Now()
	for _, c := range []struct {
		order  *election.Switchover
		node   string
		forced bool
	}{
		{nil, "", false},
		{&election.Switchover{Deadline: now.Add(1)}, "", false},
		{&election.Switchover{To: "b", Deadline: now.Add(1)}, "b", false},
		{&election.Switchover{To: "b", Deadline: now.Add(1), Force: true}, "b", true},
		{&election.Switchover{To: "b", Deadline: now, Force: true}, "b", false},
	} {
		if node, forced := known(election.Control{Switchover: c.order}).chosen(now); node != c.node || forced != c.forced {
			t.Errorf("%+v: %q, %v", c.order, node, forced)
		}
	}
	again := &election.Order{ID: "y", Token: 7, Node: "a"} // the primary that is to be restarted is promoted again, if it has all data
	if node, forced := known(election.Control{Restart: again, Reload: &election.Order{Node: "c"}}).chosen(now); node != "a" || forced {
		t.Errorf("%q, %v", node, forced)
	}
}

// A drained node gives away what is active there, except what an operator has forced it to take in spite of that, and what is paused.
func TestADrainedNodeGivesUpWhatItHas(t *testing.T) {
	first, second := &election.Drained{ID: 1}, &election.Drained{ID: 2}
	to := func(node string, force bool) election.Control {
		return election.Control{Switchover: &election.Switchover{Order: election.Order{ID: "1", Token: 6}, To: node, Force: force}}
	}
	for name, c := range map[string]struct {
		claimed, now election.Intents
		want         order
	}{
		"not drained":        {},
		"drained":            {now: election.Intents{Drained: first}, want: orderSwitchover},
		"before it claimed":  {claimed: election.Intents{Drained: first}, now: election.Intents{Drained: first}, want: orderSwitchover},
		"paused":             {now: election.Intents{Drained: first, Control: election.Control{Paused: true}}},
		"forced here":        {claimed: election.Intents{Drained: first, Control: to("a", true)}, now: election.Intents{Drained: first}},
		"drained anew":       {claimed: election.Intents{Drained: first, Control: to("a", true)}, now: election.Intents{Drained: second}, want: orderSwitchover},
		"forced before that": {claimed: election.Intents{Control: to("a", true)}, now: election.Intents{Drained: first}, want: orderSwitchover},
		"another is forced":  {claimed: election.Intents{Drained: first, Control: to("b", true)}, now: election.Intents{Drained: first}, want: orderSwitchover},
	} {
		n := known(election.Control{})
		n.learn(c.claimed)
		n.follow()
		n.learn(c.now)
		for range 2 {
			if got := n.ordered(7); got != c.want {
				t.Errorf("%s: %v", name, got)
			}
		}
	}
}

// A term takes back the orders that it has carried out, and those for a previous one; an order that came meanwhile stays.
func TestOnlyOrdersThatAreDoneAreTakenBack(t *testing.T) {
	errand := func(id string, token int64) *election.Order { return &election.Order{ID: id, Token: token} }
	if known(election.Control{}).answer(7) != nil {
		t.Error("there is nothing to take back")
	}
	n := known(election.Control{Restart: errand("1", 7)})
	n.ordered(7)
	takeBack := n.answer(7)
	for name, c := range map[string]struct {
		there election.Control
		left  bool
	}{
		"done":                       {election.Control{Restart: errand("1", 7)}, false},
		"another one":                {election.Control{Restart: errand("2", 7)}, true},
		"for a previous term":        {election.Control{Reload: errand("3", 6)}, false},
		"not done yet":               {election.Control{Reload: errand("3", 7)}, true},
		"a switchover that led here": {election.Control{Switchover: &election.Switchover{Order: *errand("4", 6)}}, false},
		"a switchover away":          {election.Control{Switchover: &election.Switchover{Order: *errand("4", 7)}}, true},
	} {
		changed := takeBack(&c.there)
		if left := c.there.Restart != nil || c.there.Reload != nil || c.there.Switchover != nil; left != c.left || changed == left {
			t.Errorf("%s: left %v, changed %v", name, left, changed)
		}
	}
}

// A reload that did harm is not taken back: its command reads what went wrong, and takes it back.
func TestAReloadThatFailedStaysUntilItsCommandHasReadWhy(t *testing.T) {
	for name, c := range map[string]struct {
		reload reload
		token  int64 // of the activation
		failed string
		left   bool
		want   string
	}{
		"done":                         {token: 7},
		"observed":                     {reload: reload{observed: true}, token: 7, left: true},
		"failed":                       {reload: reload{failed: "x"}, token: 7, left: true, want: "x"},
		"told":                         {reload: reload{failed: "x"}, token: 7, failed: "x", left: true, want: "x"},
		"of a previous term":           {reload: reload{failed: "x"}, token: 8, failed: "x"},
		"of a previous term, not told": {reload: reload{observed: true}, token: 8},
	} {
		there := election.Control{Reload: &election.Order{ID: "1", Token: 7}}
		n := known(there)
		n.ordered(7)
		n.reload = c.reload
		there.Reload.Failed = c.failed
		changed := n.answer(c.token)(&there)
		if left := there.Reload != nil; left != c.left || left && there.Reload.Failed != c.want || changed != (!left || c.want != c.failed) {
			t.Errorf("%s: changed %v, %+v", name, changed, there.Reload)
		}
	}
	n := known(election.Control{Reload: &election.Order{ID: "2", Token: 7}})
	n.reload = reload{failed: "x"} // an earlier one
	if n.ordered(7); n.reload.failed != "" {
		t.Error("the next reload counts as failed, too")
	}
}

// An operator's force counts once: the order may still be there when its term is over.
func TestAForcedOrderCountsOnce(t *testing.T) {
	n := known(election.Control{Switchover: &election.Switchover{Order: election.Order{ID: "1"}, To: "a", Force: true}})
	if !n.forced() {
		t.Error("not forced")
	}
	if n.follow(); n.forced() {
		t.Error("forced again")
	}
}

// The log alone says who ordered what, and why: for what needs nothing done here as well.
func TestEachOrderIsOneLineWithWhoOrderedIt(t *testing.T) {
	var log strings.Builder
	n := &intents{node: "a", log: hclog.New(&hclog.LoggerOptions{Output: &log, DisableTime: true}), news: newNews()}
	says := func(now election.Intents, want string) {
		t.Helper()
		log.Reset()
		n.learn(now)
		n.learn(now)
		if got := strings.TrimSpace(log.String()); got != strings.TrimSpace("[INFO]  "+want) && (want != "" || got != "") {
			t.Errorf("it logs %q, not %q", got, want)
		}
	}
	paused, resumed := election.Control{Paused: true, By: "ann (root)@op", Why: "disks"}, election.Control{By: "bob@op"}
	says(election.Intents{}, "")
	says(election.Intents{Control: paused}, `paused: automatic takeovers are off: by="ann (root)@op" why=disks`)
	says(election.Intents{Control: resumed}, "automatic takeovers are on again: by=bob@op")
	says(election.Intents{Drained: &election.Drained{ID: 1, By: "ann@op", Why: "disks"}}, "this node is drained: by=ann@op why=disks")
	says(election.Intents{Undrained: "bob@op"}, "this node is no longer drained: by=bob@op")
	sworn := election.Control{Confirmed: &election.Confirmed{Node: "b", Token: 7, By: "ann@op", At: time.Unix(1, 0)}}
	says(election.Intents{Control: sworn}, "an operator confirmed that the program of a node is dead: node=b token=7 by=ann@op")
	says(election.Intents{}, "")
}
