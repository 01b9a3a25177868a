package cli

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"understudy/supervisor/control"
	"understudy/supervisor/testbed/must"
)

func past(prefix string) []control.HistoryEntry {
	ms := func(n int64) *int64 { return &n }
	return []control.HistoryEntry{
		{Service: prefix + "db", Node: prefix + "n1", Token: 4294967317, Start: now, Active: true, RanMs: ms(61000), Fenced: "its tree on this machine is dead"},
		{Service: prefix + "db", Node: prefix + "n2", Token: 9, Start: now, End: &now, RanMs: ms(7200000), GapMs: ms(12), Reason: "stop asked", Fenced: "no breadcrumb was left"},
		{Service: prefix + "db", Node: prefix + "n3", Token: 5, Start: now.AddDate(0, 0, -1)},
		{Service: prefix + "db", Node: prefix + "n1", Token: 3, Start: now.AddDate(-1, 0, 0), End: &now, RanMs: ms(2000), Reason: "lost; fenced: grace delay of 1s", Fenced: "no breadcrumb was left"},
	}
}

func TestHistoryTellsWhenWhereHowLongAndWhy(t *testing.T) {
	t.Setenv("TZ", "UTC")
	var b bytes.Buffer
	must.OK(t, writeHistory(&b, screen{width: 80}, past(""), now, false))
	want := `WHEN         NODE  LASTED   GAP  STARTUP  ENDED               PROOF
10:03:12     n1     1m01s     -        -  active              its tree on this
                                                              machine is dead
10:03:12     n2     2h00m  12ms        -  stop asked          -
06-30 10:03  n3         -     -        -  no word of its end  no word
2025-07-01   n1        2s     -        -  lost with its       -
                                          supervisor or host
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// What ended at an unknown time is not left out by its time.
func TestOldActivationsAreLeftOut(t *testing.T) {
	before, after := now.Add(-time.Hour), now.Add(time.Hour)
	for name, c := range map[string]struct {
		a    control.HistoryEntry
		want bool
	}{
		"ended before": {control.HistoryEntry{End: &before}, true}, "ended since": {control.HistoryEntry{End: &after}, false},
		"goes on": {control.HistoryEntry{Active: true}, false}, "unknown": {control.HistoryEntry{}, false},
		"lost before": {control.HistoryEntry{EndMin: &before, EndMax: &before}, true}, "lost about then": {control.HistoryEntry{EndMin: &before, EndMax: &after}, false},
	} {
		if got := endedBefore(c.a, now); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// Who did not reach a primary is told with the reason.
func TestHistoryTellsWhoDidNotReachAPrimary(t *testing.T) {
	if got, want := ended(control.HistoryEntry{Reason: "not reachable; for 2 of 3: n2, n3"}), "not reachable for 2 of 3: n2, n3"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// What nobody wrote down is shown as far as it is known, and an overlap as what it is.
func TestHistoryShowsABoundedGapAndAnOverlap(t *testing.T) {
	ms := func(n int64) *int64 { return &n }
	for want, a := range map[string]control.HistoryEntry{
		"5s 5.0s 5.0s":             {RanMs: ms(5000), GapMs: ms(5007), ReadyMs: ms(5000)},
		"~1m28s-1m31s ~6-8s 100ms": {RanMinMs: ms(88900), RanMaxMs: ms(90100), GapMinMs: ms(6200), GapMaxMs: ms(7900), ReadyMs: ms(100)},
		"<1m30s >6.2s 0ms":         {RanMaxMs: ms(90100), GapMinMs: ms(6200), ReadyMs: ms(0)},
		"~500-900ms ~10-20ms -":    {RanMinMs: ms(500), RanMaxMs: ms(900), GapMinMs: ms(10), GapMaxMs: ms(20)},
		"0s overlap 19.5s -":       {RanMs: ms(0), OverlapMs: ms(19500)},
		"0s ~6s -":                 {RanMs: ms(0), GapMinMs: ms(6000), GapMaxMs: ms(6000)},
		"- - -":                    {},
	} {
		if got := ran(a) + " " + gap(a) + " " + lasted(a.ReadyMs, brief); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestWhereNoActivationMatchesTheirNumberIsSaid(t *testing.T) {
	for kept, want := range map[int]string{0: "Nothing has been active yet below /r on zk:1.", 1: "The last activation does not match.", 4: "None of the last 4 activations matches."} {
		if got := unmatched(kept, "/r on zk:1"); got != want {
			t.Errorf("%d: %s", kept, got)
		}
	}
}
