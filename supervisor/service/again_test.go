package service

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"understudy/election"
	"understudy/supervisor/config"
	"understudy/supervisor/copies"
	"understudy/supervisor/service/role"
	"understudy/supervisor/unit"
)

// After a fencing the copy is taken only if it still is the best one. Whatever the outcome, nothing is asked any more.
func TestWhoHasFencedComparesTheCopiesOnceMore(t *testing.T) {
	newer := copies.Verdict{Node: "b"}
	for name, c := range map[string]struct {
		fenced  bool
		verdict *copies.Verdict // nil: there is none
		want    role.EventKind
		takes   time.Duration
	}{
		"nobody was fenced":        {false, &newer, role.Armed, 0},
		"it is still the best one": {true, &copies.Verdict{Node: "a"}, role.Armed, time.Second},
		"by an operator's choice":  {true, &copies.Verdict{Node: "a", Forced: true}, role.Armed, time.Second},
		"another one is newer":     {true, &newer, role.Behind, time.Second},
		"another one may be":       {true, &copies.Verdict{Why: "1 of 2 copies have reported their position"}, role.Behind, askLongest},
		"the lock is lost":         {true, &copies.Verdict{}, role.LockLost, time.Second},
		"nothing comes":            {true, nil, role.Behind, askLongest},
	} {
		synctest.Test(t, func(t *testing.T) {
			v := made(t, Conf{Service: config.Service{Replicated: &config.Replicated{}}}, nil)
			h := v.testStay(t.Context(), Session{}, nil)
			h.term.claim, h.term.promotion.mustCompareAgain = &election.Claim{Token: 7}, c.fenced
			if c.verdict != nil {
				time.AfterFunc(time.Second, func() {
					v.copy.answer(6, copies.Verdict{Node: "a"}) // to another term
					v.copy.answer(7, *c.verdict)
				})
			}
			began := time.Now()
			if got := h.term.promotion.compareAgain(t.Context(), &h.term); got.Kind != c.want || time.Since(began) != c.takes || v.copy.asks() != 0 {
				t.Errorf("%s: %v after %v, want %v after %v; asks %d", name, got.Kind, time.Since(began), c.want, c.takes, v.copy.asks())
			}
			time.Sleep(time.Minute)
		})
	}
}

// Nothing was started in a copy's tree before the term has taken it: the lock is given back, and the follower runs on.
func TestATermThatHasNotTakenItsCopyLeavesItRunning(t *testing.T) {
	for _, spares := range []bool{false, true} {
		var log strings.Builder
		v := made(t, Conf{Service: config.Service{Replicated: &config.Replicated{}}}, func(n *LocalNode) { n.Logger = hclog.New(&hclog.LoggerOptions{Output: &log}) })
		sess, tree := &election.Session{}, &endingTree{}
		h := v.testStay(t.Context(), Session{Session: sess, Gate: gateOf(sess)}, tree)
		h.term.claim, h.term.promotion.copyNotTaken = &election.Claim{Token: 7}, spares
		if got := h.Prove(context.Background()); got.Kind != role.Proved || (tree.ended > 0) == spares {
			t.Errorf("it spares the copy: %v: %v, the tree was ended %d times (%s)", spares, got.Kind, tree.ended, log.String())
		}
	}
}

// P2: the programs of a term that was handed over run in its tree, also where the new config makes the service a replicated one.
func TestATermThatWasHandedOverEndsItsTree(t *testing.T) {
	sess, tree := &election.Session{}, &endingTree{}
	v := made(t, Conf{Service: config.Service{Replicated: &config.Replicated{}}}, nil)
	r := CarriedService{Name: "db", Term: &CarriedTerm{Tree: json.RawMessage(`{"tree":1}`), Run: &unit.CarriedRun{}, tree: tree}}
	r.State.Carried = true
	v.Remember(r)
	h := v.testStay(t.Context(), Session{Session: sess, Gate: gateOf(sess)}, tree)
	h.beginTerm(&election.Claim{Token: 7}, election.Effects{}) // as Resume and drop do
	if got := h.Prove(context.Background()); got.Kind != role.Proved || tree.ended != 1 {
		t.Errorf("%v, its tree was ended %d times", got.Kind, tree.ended)
	}
}

// A copy's tree outlasts candidacies. It is known once, and pushes out no others that only this supervisor can prove dead.
func TestATreeIsKnownOnce(t *testing.T) {
	m := &trees{}
	old := &OwnTree{ID: json.RawMessage("1")}
	m.add(old)
	for range 2 * treesKept {
		m.add(&OwnTree{ID: json.RawMessage("2")})
	}
	if m.find(old.ID) != old || len(m.all) != 2 {
		t.Errorf("%d trees are known", len(m.all))
	}
}

// Without positions_from in the config, a node that is known and away counts: its copy may have the newest data.
func TestACopyWhoseNodeIsAwayCountsByDefault(t *testing.T) {
	ten := uint64(10)
	r := &config.Replicated{}
	v := made(t, Conf{Service: config.Service{Replicated: r}}, nil)
	mine := election.CopyReport{Node: "a", Followed: 5, Position: &ten, Vacancy: 7, Stands: true}
	for _, c := range []struct {
		from  int
		known []string
		why   string
	}{
		{0, []string{"a", "b", "c"}, "1 of 2 copies have reported their position (b: it has reported nothing; c: it has reported nothing)"},
		{0, []string{"a", "b"}, ""},
		{1, []string{"a", "b", "c"}, ""},
	} {
		r.PositionsFrom = c.from
		seen := election.CopiesSeen{Promoted: election.Promotion{Token: 5}, Known: c.known}
		if got := (&comparing{v: v}).verdict(v.Given(), seen, 7, mine); got.Why != c.why {
			t.Errorf("%+v: %+v", c, got)
		}
	}
}

// Before the first promotion every node has to report that has a copy by its own word or by the config, whatever positions_from is: the one that is
// missing may be the one with the data.
func TestTheFirstPromotionWaitsForEachNodeOfTheConfig(t *testing.T) {
	five := uint64(5)
	r := &config.Replicated{PositionsFrom: 2, Others: map[string]string{"b": "10.0.0.2", "c": "10.0.0.3"}}
	v := made(t, Conf{Service: config.Service{Replicated: r}}, func(n *LocalNode) { n.Self.Node = "a" })
	report := func(node string) election.CopyReport {
		return election.CopyReport{Node: node, Address: r.Others[node], Position: &five, Vacancy: 7, Stands: true}
	}
	for _, c := range []struct {
		reports, known []string
		want           string
	}{
		{[]string{"b"}, []string{"a", "b"}, ""},
		{[]string{"b", "c"}, []string{"a", "b", "c"}, "a"},
		{[]string{"b", "c"}, []string{"a", "b", "c", "d"}, ""}, // one that is in the config no more
	} {
		seen := election.CopiesSeen{Known: c.known}
		for _, node := range c.reports {
			seen.Copies = append(seen.Copies, report(node))
		}
		if got := (&comparing{v: v}).verdict(v.Given(), seen, 7, report("a")); got.Node != c.want || (got.Why == "") != (c.want != "") {
			t.Errorf("%+v: %+v", c, got)
		}
	}
}

// A copy that has lost nothing, and cannot tell how much it has, has some. What it said in another vacancy does not count.
func TestACopyThatHasLostNothingCounts(t *testing.T) {
	zero, six := uint64(0), uint64(6)
	v := made(t, Conf{Service: config.Service{Replicated: &config.Replicated{PositionsFrom: 2}}}, nil)
	for name, c := range map[string]struct {
		promoted     int64
		mine, theirs election.CopyReport
		want         string
	}{
		"of the first ones":          {0, election.CopyReport{Position: &zero}, election.CopyReport{Same: true, Vacancy: 7}, "b"},
		"the one that was promoted":  {5, election.CopyReport{Followed: 5, Position: &six}, election.CopyReport{Followed: 5, Same: true, Had: 4, Led: true, Vacancy: 7}, "b"},
		"another one":                {5, election.CopyReport{Followed: 5, Position: &six}, election.CopyReport{Followed: 5, Same: true, Had: 4, Vacancy: 7}, ""},
		"which had more than others": {5, election.CopyReport{Followed: 5, Position: &six}, election.CopyReport{Followed: 5, Same: true, Had: 8, Vacancy: 7}, "b"},
		"in an earlier vacancy":      {5, election.CopyReport{Followed: 5, Position: &six}, election.CopyReport{Followed: 5, Same: true, Had: 8, Vacancy: 6}, ""},
	} {
		c.mine.Node, c.theirs.Node, c.mine.Vacancy, c.theirs.Stands = "a", "b", 7, true
		seen := election.CopiesSeen{Promoted: election.Promotion{Token: c.promoted}, Copies: []election.CopyReport{c.theirs}}
		if got := (&comparing{v: v}).verdict(v.Given(), seen, 7, c.mine); got.Node != c.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// A copy that was told last to follow the node that was promoted last may have followed that promotion on its own, or have an address in
// common with it.
func TestACopyThatMayHaveFollowedOnItsOwnIsTakenIntoAccount(t *testing.T) {
	ten, eleven := uint64(10), uint64(11)
	v := made(t, Conf{Service: config.Service{Replicated: &config.Replicated{PositionsFrom: 2}}}, nil)
	for source, alone := range map[election.Source]bool{{Node: "c", Address: "x"}: true, {Node: "d", Address: "y"}: true, {Node: "d", Address: "x"}: false, {}: false} {
		seen := election.CopiesSeen{
			Promoted: election.Promotion{Token: 5, Source: election.Source{Node: "c", Address: "y"}},
			Copies:   []election.CopyReport{{Node: "b", Followed: 4, Position: &eleven, Vacancy: 7, Stands: true, Source: source}},
		}
		mine := election.CopyReport{Node: "a", Followed: 5, Position: &ten, Vacancy: 7, Stands: true}
		if got := (&comparing{v: v}).verdict(v.Given(), seen, 7, mine); (got.Node == "a") == alone {
			t.Errorf("%+v: %+v", source, got)
		}
	}
}

// A switchover that names no node goes to another one, whose copy is as good. So says each node.
func TestOfEqualCopiesAnotherOneThanThatWhichGivesTheServiceAwayIsPromoted(t *testing.T) {
	nine, ten := uint64(9), uint64(10)
	now := time.Now()
	for name, c := range map[string]struct {
		order  *election.Switchover
		theirs *uint64
		want   string
	}{
		"nobody ordered anything":            {nil, &ten, "a"},
		"the first by name gives it away":    {&election.Switchover{From: "a"}, &ten, "b"},
		"the other one does":                 {&election.Switchover{From: "b"}, &ten, "a"},
		"it has the newest data":             {&election.Switchover{From: "a"}, &nine, "a"},
		"it is given to the one that has":    {&election.Switchover{From: "b", To: "a"}, &ten, "a"},
		"and it is given to the other one":   {&election.Switchover{From: "a", To: "b"}, &ten, "b"},
		"which lacks data":                   {&election.Switchover{From: "a", To: "b"}, &nine, "a"},
		"the one that is to take it is away": {&election.Switchover{From: "a", To: "c"}, &ten, "a"},
		"the other one has not told of any":  {&election.Switchover{From: "a"}, nil, "a"},
	} {
		for _, me := range []string{"a", "b"} {
			v := made(t, Conf{Service: config.Service{Replicated: &config.Replicated{PositionsFrom: 1}}}, func(n *LocalNode) { n.Self.Node = me })
			if c.order != nil {
				c.order.Deadline = now.Add(time.Hour)
			}
			v.inbox.intents.learn(election.Intents{Control: election.Control{Switchover: c.order}})
			both := map[string]election.CopyReport{
				"a": {Node: "a", Followed: 5, Position: &ten, Vacancy: 7, Stands: true}, "b": {Node: "b", Followed: 5, Position: c.theirs, Vacancy: 7, Stands: true},
			}
			seen := election.CopiesSeen{Promoted: election.Promotion{Token: 5}, Copies: []election.CopyReport{both["a"], both["b"]}}
			if got := (&comparing{v: v}).verdict(v.Given(), seen, 7, both[me]); got.Node != c.want {
				t.Errorf("%s: %s says %+v, want %s", name, me, got, c.want)
			}
		}
	}
}

// The node that gives the service away leaves the others time to tell of their copies, as that of a plain service leaves them the lock.
func TestWhoGivesTheServiceAwayWaitsLongerForTheOthersPositions(t *testing.T) {
	for name, c := range map[string]struct {
		order *election.Switchover
		want  time.Duration
	}{
		"nobody ordered anything":  {nil, askFor},
		"it gives it to any":       {&election.Switchover{From: "a"}, graceForAny},
		"another one gives it":     {&election.Switchover{From: "b"}, askFor},
		"it gives it to that":      {&election.Switchover{From: "a", To: "b"}, askChosen},
		"it is the one that takes": {&election.Switchover{From: "b", To: "a"}, askFor},
	} {
		synctest.Test(t, func(t *testing.T) {
			v := made(t, Conf{Service: config.Service{Replicated: &config.Replicated{}}}, func(n *LocalNode) { n.Self.Node = "a" })
			v.inbox.intents.learn(election.Intents{Control: election.Control{Switchover: c.order}})
			cmp, began := &comparing{v: v}, time.Now()
			for cmp.awaits(election.CopiesSeen{Copies: []election.CopyReport{{Node: "a"}, {Node: "b"}}}, 7) {
				time.Sleep(time.Millisecond)
			}
			if waited := time.Since(began); waited != c.want {
				t.Errorf("%s: it waits for %v, want %v", name, waited, c.want)
			}
		})
	}
}

// The copy that is to be promoted may just have been started, as in a restart: its position is waited for, unless that is of no account.
func TestThePositionOfTheCopyThatIsToBePromotedIsWaitedFor(t *testing.T) {
	told := func(position *uint64, same bool) election.CopyReport {
		return election.CopyReport{Node: "b", Vacancy: 7, Position: position, Same: same}
	}
	restart := election.Control{Restart: &election.Order{Node: "b"}}
	for name, c := range map[string]struct {
		control election.Control
		said    election.CopyReport
		want    time.Duration
	}{
		"it is not known yet":         {restart, told(nil, false), askChosen},
		"it is known":                 {restart, told(new(uint64(5)), false), 0},
		"it has lost nothing":         {restart, told(nil, true), 0},
		"another one's is not known":  {election.Control{Restart: &election.Order{Node: "a"}}, told(nil, false), 0},
		"whatever data it has":        {election.Control{Switchover: &election.Switchover{To: "b", Force: true, Deadline: time.Now().Add(time.Hour)}}, told(nil, false), 0},
		"nobody has ordered anything": {election.Control{}, told(nil, false), 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			v := made(t, Conf{Service: config.Service{Replicated: &config.Replicated{}}}, func(n *LocalNode) { n.Self.Node = "a" })
			v.inbox.intents.learn(election.Intents{Control: c.control})
			cmp, began := &comparing{v: v}, time.Now()
			for cmp.awaits(election.CopiesSeen{Copies: []election.CopyReport{c.said}}, 7) {
				time.Sleep(time.Millisecond)
			}
			if waited := time.Since(began); waited != c.want {
				t.Errorf("%s: it waits for %v, want %v", name, waited, c.want)
			}
		})
	}
}
