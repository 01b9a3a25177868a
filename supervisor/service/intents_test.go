package service

import (
	"testing"

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
		"for a former term":    {election.Control{Restart: errand(6), Reload: errand(6)}, orderNone, orderNone},
		"a reload, restarting": {election.Control{Restart: errand(7), Reload: errand(7)}, orderRestart, orderReload},
	} {
		n := known(c.control)
		if first, next := n.ordered(7), n.ordered(7); first != c.first || next != c.next {
			t.Errorf("%s: %v, then %v", name, first, next)
		}
	}
}

// A term takes back the orders that it has carried out, and those for a former one; an order that came meanwhile stays.
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
		"for a former term":          {election.Control{Reload: errand("3", 6)}, false},
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
