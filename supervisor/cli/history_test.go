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
		{Service: prefix + "db", Node: prefix + "n2", Token: 9, Start: now, End: &now, RanMs: ms(7200000), GapMs: ms(12), Reason: "stop asked", Fenced: "no breadcrumb was left"},
		{Service: prefix + "db", Node: prefix + "n3", Token: 5, Start: now.AddDate(0, 0, -1)},
		{Service: prefix + "db", Node: prefix + "n1", Token: 3, Start: now.AddDate(-1, 0, 0), End: &now, RanMs: ms(2000), Reason: "lost; fenced: grace delay of 1s", Fenced: "no breadcrumb was left"},
	}
}

func TestHistoryTellsWhenWhereHowLongAndWhy(t *testing.T) {
	t.Setenv("TZ", "UTC")
	var b bytes.Buffer
	if err := writeHistory(&b, screen{width: 80}, past(""), now, false); err != nil {
		t.Fatal(err)
	}
	want := `WHEN         NODE  LASTED   GAP  ENDED                   FORMER FENCED
10:03:12     n1     1m01s     -  active                  its tree on this
                                                         machine is dead
10:03:12     n2     2h00m  12ms  stop asked              -
06-30 10:03  n3         -     -  no word of its end      no word
2025-07-01   n1        2s     -  lost with its           -
                                 supervisor or host
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
