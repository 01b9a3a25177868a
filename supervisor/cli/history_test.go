package cli

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"

	"understudy/supervisor/control"
)

func past(prefix string) []control.Activation {
	ms := func(n int64) *int64 { return &n }
	return []control.Activation{
		{Service: prefix + "db", Node: prefix + "n1", Token: 4294967317, Start: now, Active: true, RanMs: ms(61000), Fenced: "its tree on this machine is dead"},
		{Service: prefix + "db", Node: prefix + "n2", Token: 9, Start: now, End: &now, RanMs: ms(7200000), GapMs: ms(12), Reason: "stop asked", Fenced: "nobody was active"},
		{Service: prefix + "db", Node: prefix + "n3", Token: 5, Start: now.AddDate(0, 0, -1)},
	}
}

func TestHistoryTellsWhenWhereHowLongAndWhy(t *testing.T) {
	t.Setenv("TZ", "UTC")
	var b bytes.Buffer
	if err := writeHistory(&b, 80, past(""), now, false); err != nil {
		t.Fatal(err)
	}
	want := `START             NODE       TOKEN    RAN   GAP  ENDED; FORMER ONE KNOWN DEAD BY
10:03:12          n1    4294967317  1m01s     -  active; its tree on this
                                                 machine is dead
10:03:12          n2             9  2h00m  12ms  stop asked; nobody was active
2026-06-30 10:03  n3             5      -     -  no word of its end
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
