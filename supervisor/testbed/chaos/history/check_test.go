package history

import (
	"strings"
	"testing"
	"time"

	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/kit/store"
)

const (
	second = int64(time.Second)
	ms     = int64(time.Millisecond)
)

func run(node string, token, first, last int64) Run {
	id := node + time.Duration(first).String()
	return Run{Run: kit.Run{Node: node, Token: token, ID: id, First: first, Last: last}, Service: "db", Acked: 2}
}

// well is a history in which all is as it should be: b follows a, whose supervisor was killed.
func well() *History {
	h := &History{
		Ended: 60 * second,
		Setup: Setup{
			Nodes: []string{"a", "b"}, Services: []string{"db"},
			Bounds: Bounds{Progress: 10 * time.Second, Orphan: time.Second},
		},
		Runs:  []Run{run("a", 7, 1*second, 20*second), run("b", 9, 20*second+5*ms, 60*second)},
		Lives: []Life{{"a", 1, 0, 20*second - ms}, {"b", 2, 0, 0}, {"a", 3, 22 * second, 0}},
		Marks: []Mark{{At: 0, Able: able(true)}, {At: 20*second - ms, Able: able(true)}, {At: 22 * second, Able: able(true)}},
	}
	for _, r := range h.Runs {
		for n := int64(1); n <= 2; n++ {
			h.Writes = append(h.Writes, write(r, n, store.Taken))
		}
	}
	return h
}

func able(yes bool) map[string]bool { return map[string]bool{"db": yes} }

func write(r Run, n int64, v store.Verdict) store.Write {
	return store.Write{At: r.First + n*ms, Verdict: v, Service: r.Service, Token: r.Token, Run: r.ID, N: n}
}

func TestCheckerFinds(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(h *History)
		want  string // the violations, by what they are; empty: none
	}{
		"nothing in a history that is well": {func(*History) {}, ""},
		"an overlap of a millisecond":       {func(h *History) { h.Runs[0].Last = h.Runs[1].First + ms; h.Lives[0].To += 5 * ms }, "overlap"},
		"an overlap with a later run than the next": {func(h *History) {
			h.Runs = append(h.Runs, run("a", 11, 61*second, 70*second), run("b", 12, 71*second, 80*second))
			h.Runs[1].Last, h.Ended = 72*second, 80*second
			h.Runs[2].Acked, h.Runs[3].Acked = 0, 0
		}, "overlap overlap"},
		"an overlap that only the kernel saw": {func(h *History) {
			h.Denials = []Denial{{At: 20 * second, Service: "db", Node: "b", Token: 9}}
		}, "overlap"},
		"an overlap of two runs of one activation": {func(h *History) {
			h.Runs[1].Node, h.Runs[1].Token = "a", 7
			h.Runs[1].First = h.Runs[0].Last - ms
			h.Lives[0].To = 0
			h.Lives[2].From = 70 * second
			for i := range h.Writes {
				h.Writes[i].Token = 7
			}
		}, "overlap"},
		"a promotion in spite of a pause": {func(h *History) { h.Pauses = []Pause{{"db", 8, 10}} }, "promoted"},
		"none before and after a pause":   {func(h *History) { h.Pauses = []Pause{{"db", 7, 9}, {"other", 8, 10}} }, ""},
		"a token that falls":              {func(h *History) { h.Runs[1].Token = 6; h.Writes[2].Token, h.Writes[3].Token = 7, 7 }, "token"},
		"the same token on two nodes": {func(h *History) {
			h.Runs[1].Token = 7
		}, "token"},
		"no token":                          {func(h *History) { h.Runs[0].Token = 0 }, "token"},
		"an orphan":                         {func(h *History) { h.Lives[0].To = 18 * second }, "orphan"},
		"no orphan where the bound is kept": {func(h *History) { h.Lives[0].To = 19*second + ms }, ""},
		"a run without any supervisor":      {func(h *History) { h.Lives = h.Lives[1:] }, "orphan"},
		"an orphan of one supervisor in the next one's time": {func(h *History) { h.Lives[0].To = 5 * second; h.Lives[2].From = 6 * second }, "orphan"},
		"a service that is stuck":                            {func(h *History) { h.Runs[1].First = 33 * second }, "stuck"},
		"a service that is stuck at the end":                 {func(h *History) { h.Runs[1].Last = 49 * second }, "stuck"},
		"a service that never ran":                           {func(h *History) { h.Runs, h.Writes = nil, nil }, "stuck"},
		"nothing where nobody could run":                     {func(h *History) { h.Runs[1].First = 33 * second; h.Marks[2].Able = able(false) }, ""},
		"nothing where faults kept coming": {func(h *History) {
			h.Runs[1].First = 33 * second
			h.Marks = append(h.Marks, Mark{At: 27 * second, Able: able(true)})
		}, ""},
		"an acknowledged write that is lost":     {func(h *History) { h.Writes = h.Writes[:3] }, "lost write"},
		"a lost write before others":             {func(h *History) { h.Writes = append(h.Writes[:2:2], h.Writes[3]) }, "lost write"},
		"a write that the store knows to miss":   {func(h *History) { h.Writes = append(h.Writes, write(h.Runs[1], 5, store.Broken)) }, "lost write"},
		"a store that takes old tokens":          {func(h *History) { h.Writes = append(h.Writes, write(h.Runs[0], 3, store.Taken)) }, "lost write"},
		"nothing where an old token was refused": {func(h *History) { h.Writes = append(h.Writes, write(h.Runs[0], 3, store.Old)) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := well()
			c.spoil(h)
			var got []string
			for _, v := range h.Check() {
				got = append(got, v.What)
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("found %q, not %q: %+v", got, c.want, h.Check())
			}
		})
	}
}

func TestGapsGoToTheFaultThatExplainsThem(t *testing.T) {
	h := well()
	h.Bursts = []Burst{
		{Well: 15 * second}, // nothing could strike
		{Faults: []Fault{{Kind: "killed", Node: "a", From: 20*second - ms, To: 22 * second}, {Kind: "cut", Node: "b", From: 19 * second, To: 22 * second}}, Well: 25 * second},
		{Faults: []Fault{{Kind: "cut", Node: "b", From: 40 * second, To: 41 * second}}, Well: 42 * second},
	}
	rows := h.Table()
	if len(rows) != 2 || rows[0].Kind != "killed" || len(rows[0].Gaps) != 1 || rows[0].Gaps[0] != 5*time.Millisecond {
		t.Errorf("the gap is not the killing's: %+v", rows)
	}
	if rows[1].Kind != "cut" || rows[1].Count != 2 || len(rows[1].Gaps) != 0 {
		t.Errorf("being cut off cost nothing: %+v", rows)
	}
	h.Bursts[1].Faults[1].Node = "" // now it may be either
	rows = h.Table()
	if last := rows[len(rows)-1]; last.Kind != Several || len(last.Gaps) != 1 {
		t.Errorf("one of several faults was blamed: %+v", rows)
	}
}
