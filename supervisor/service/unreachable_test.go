package service

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"understudy/election"
	"understudy/supervisor/child"
	"understudy/supervisor/config"
	"understudy/supervisor/copies"
	"understudy/supervisor/service/role"
	"understudy/supervisor/unit"
)

// Nobody is asked to take over whose copy would not be promoted.
func TestWhoWouldTakeOverFromAnUnreachablePrimary(t *testing.T) {
	ill, well := &election.SeenPrimary{Token: 9, Why: "no answer"}, &election.SeenPrimary{Token: 9, Well: true}
	fit := election.CopyReport{Node: "b", Era: 1, Followed: 9, Stands: true, Sees: ill}
	for name, c := range map[string]struct {
		change func(*election.CopyReport)
		last   uint64 // what nodes/b says, of another promotion if it is odd; 0: nothing
		want   string
	}{
		"it follows":                       {func(*election.CopyReport) {}, 90, "b"},
		"and reaches it":                   {func(c *election.CopyReport) { c.Sees = well }, 90, "b"},
		"behind, but follows":              {func(*election.CopyReport) {}, 80, "b"},
		"it got nothing since":             {func(*election.CopyReport) {}, 78, ""},
		"it has not told":                  {func(*election.CopyReport) {}, 0, ""},
		"with another one's data":          {func(*election.CopyReport) {}, 99, ""},
		"cut off, with all data":           {func(c *election.CopyReport) { c.Why = "it has no position" }, 100, "b"},
		"it is not to be promoted":         {func(c *election.CopyReport) { c.Stands = false }, 100, ""},
		"on the way to the primary's data": {func(c *election.CopyReport) { c.Followed, c.Toward = 0, 9 }, 100, ""},
		"it does not tell":                 {func(c *election.CopyReport) { c.Sees = nil }, 100, ""},
		"it tells of another promotion":    {func(c *election.CopyReport) { c.Sees = &election.SeenPrimary{Token: 8} }, 100, ""},
		"of another time":                  {func(c *election.CopyReport) { c.Era = 2 }, 100, ""},
	} {
		one := fit
		c.change(&one)
		seen := election.CopiesSeen{Era: 1, Holder: "a", Token: 9, Promoted: election.Promotion{Token: 9}, Copies: []election.CopyReport{{Node: "a", Era: 1, Followed: 9, Promoted: 9, Stands: true}, one}}
		told := heirs("a", 100, 80, seen, func(string) (election.At, bool) {
			return election.At{Token: 9 - int64(c.last%2), Position: c.last}, c.last > 0
		})
		rules := copies.Rules{Era: 1, Promoted: 9, From: 2, MaxLag: 10}
		if c.last == 78 { // within max_lag it would do
			rules.MaxLag = 22
			if got := rules.Judge(told); got.Node != "b" {
				t.Errorf("%s, within max_lag: %+v", name, got)
			}
			rules.MaxLag = 10
		}
		if got := rules.Judge(told); got.Node != c.want || (got.Why == "") != (c.want != "") {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// What is told of another promotion says nothing of this one, also where ZooKeeper has lost its data and tokens come again.
func TestOnlyWhatIsToldOfThisPrimaryCounts(t *testing.T) {
	for name, c := range map[string]struct {
		one  election.CopyReport
		want bool
	}{
		"of this one":     {election.CopyReport{Era: 1, Sees: &election.SeenPrimary{Token: 9}}, true},
		"of another one":  {election.CopyReport{Era: 1, Sees: &election.SeenPrimary{Token: 8}}, false},
		"of another time": {election.CopyReport{Era: 2, Sees: &election.SeenPrimary{Token: 9}}, false},
		"nothing":         {election.CopyReport{Era: 1}, false},
	} {
		if got := tells(c.one, election.CopiesSeen{Era: 1, Token: 9}); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// A primary that others do not reach stays where a pause, the lack of a fit copy, or a recent move keeps it.
func TestWhatKeepsAnUnreachablePrimary(t *testing.T) {
	now := outside{token: 9, who: "for 1 of 1: b", why: "no answer", to: "b"}
	for name, c := range map[string]struct {
		change func(*Service, *outside)
		well   time.Duration
		why    string
	}{
		"nothing": {func(*Service, *outside) {}, 0, ""},
		"a pause": {func(v *Service, _ *outside) {
			v.inbox.intents.learn(election.Intents{Control: election.Control{Paused: true}})
		}, time.Hour, "paused"},
		"nobody fit":  {func(_ *Service, o *outside) { o.to, o.unfit = "", "none has told" }, time.Hour, "none has told"},
		"a while ago": {func(v *Service, _ *outside) { v.mem.preference.relapses.gaveUp(time.Now(), time.Minute) }, 0, "not again before"},
		"it is well":  {func(v *Service, _ *outside) { v.mem.preference.relapses.gaveUp(time.Now(), time.Minute) }, time.Minute, ""},
		"long ago": {func(v *Service, _ *outside) {
			v.mem.preference.relapses.gaveUp(time.Now().Add(-time.Hour), time.Minute)
		}, 0, ""},
	} {
		v := made(t, Conf{Service: config.Service{Restart: config.Restart{Within: time.Minute}}}, nil)
		o := now
		c.change(v, &o)
		if why := v.stays(o, c.well); (why == "") != (c.why == "") || !strings.Contains(why, c.why) {
			t.Errorf("%s: %q", name, why)
		}
	}
}

// Until it is known whether a copy is fit, nothing is stopped, and nothing said.
func TestAnUnreachablePrimaryWaitsForTheVerdict(t *testing.T) {
	var log strings.Builder
	v := made(t, Conf{}, func(n *LocalNode) { n.Logger = hclog.New(&hclog.LoggerOptions{Output: &log}) })
	v.mem.lastTerm.token = 9
	for name, c := range map[string]struct {
		now   outside
		warns bool
	}{
		"not known yet":   {outside{token: 9, who: "for 1 of 1: b"}, false},
		"none is fit":     {outside{token: 9, who: "for 1 of 1: b", unfit: "none"}, true},
		"another term's":  {outside{token: 8, who: "for 1 of 1: b", to: "b"}, false},
		"it is reachable": {outside{token: 9}, false},
	} {
		log.Reset()
		v.copy = &copyHere{outside: c.now}
		newStay(t.Context(), v, Session{}).term.leaveUnreachable(time.Hour) // it has no programs to end
		newStay(t.Context(), v, Session{}).term.leaveUnreachable(time.Hour)
		if n := strings.Count(log.String(), "stays here"); n > 1 || (n == 1) != c.warns {
			t.Errorf("%s: %s", name, log.String())
		}
	}
}

// History and status have who did not reach a primary, and that memory was short.
func TestTheReasonNamesWhatEndedIt(t *testing.T) {
	v := made(t, Conf{}, nil)
	s := &newStay(t.Context(), v, Session{}).term
	s.run.why = unreachable{outside{who: "for 2 of 3: b, c", why: "tcp 10.0.0.1:1: refused"}}
	v.state.Cause = role.NotReachable
	if got := s.endReason(); got != "not reachable; for 2 of 3: b, c" || got.Word() != election.NotReachable || got.Planned() {
		t.Errorf("%q", got)
	}
	s.run.why, v.state.Cause = &unit.Ended{Status: child.ExitStatus{Code: 137, Signal: syscall.SIGKILL, OutOfMemory: true}}, role.Failed
	if got := s.endReason(); got != election.OutOfMemory || got.Planned() {
		t.Errorf("%q", got)
	}
	v.state.Cause = role.LeaseOver // it came in between
	if got := s.endReason(); got != election.LeaseEnding {
		t.Errorf("%q", got)
	}
	var w wellness
	w.news = newNews()
	w.seen("not reachable for 2 of 3: b, c")
	if h, why := w.of(election.Control{}); h != election.HealthOK || why != "not reachable for 2 of 3: b, c" {
		t.Errorf("%s: %s; a load balancer would take it out, and nobody takes over", h, why)
	}
	w.forgetRun()
	if _, why := w.of(election.Control{}); why != "" {
		t.Errorf("of a run before: %q", why)
	}
}

// What was given up comes back early only if nobody takes it over.
func TestAGivenUpPrimaryComesBackEarlyOnlyIfNobodyTakesOver(t *testing.T) {
	for name, c := range map[string]struct {
		cause   role.EventKind
		verdict verdictOf
		since   time.Duration
		want    bool
	}{
		"none is fit":     {role.NotReachable, verdictOf{Verdict: copies.Verdict{Why: "none"}, vacancy: 7}, time.Minute, true},
		"not known yet":   {role.NotReachable, verdictOf{Verdict: copies.Verdict{Why: "none"}, vacancy: 7}, 0, false},
		"another one is":  {role.NotReachable, verdictOf{Verdict: copies.Verdict{Node: "b"}, vacancy: 7}, time.Minute, false},
		"it is active":    {role.NotReachable, verdictOf{}, time.Minute, false},
		"after a failure": {role.Failed, verdictOf{Verdict: copies.Verdict{Why: "none"}, vacancy: 7}, time.Minute, false},
		"with the newest": {role.Failed, verdictOf{Verdict: copies.Verdict{Why: "none", Best: "a"}, vacancy: 7}, 11 * time.Second, true},
		"which just came": {role.Failed, verdictOf{Verdict: copies.Verdict{Why: "none", Best: "a"}, vacancy: 7}, 9 * time.Second, false},
		"not fenced":      {role.Failed, verdictOf{Verdict: copies.Verdict{Why: "none", Best: "a"}, vacancy: 7}, time.Minute, false},
		"another has it":  {role.Failed, verdictOf{Verdict: copies.Verdict{Why: "none", Best: "b"}, vacancy: 7}, time.Minute, false},
	} {
		v := made(t, Conf{Service: config.Service{Restart: config.Restart{Delay: 5 * time.Second, MaxDelay: time.Minute}}}, func(n *LocalNode) { n.Self.Node = "a" })
		v.mem.preference.relapses.times, v.state.BackOffUntilProof = 1, name == "not fenced"
		v.copy = &copyHere{vacancy: 7, vacant: time.Now().Add(-c.since), verdict: c.verdict}
		v.state.Cause = c.cause
		if got := v.untaken(); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
