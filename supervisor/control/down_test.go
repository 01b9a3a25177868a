package control

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/google/go-cmp/cmp"

	"understudy/election"
	"understudy/supervisor/testbed/must"
)

// at replaces seconds after began, as in "+12.5", by that time.
func at(entry string) string {
	return regexp.MustCompile(`"\+[0-9.]+"`).ReplaceAllStringFunc(entry, func(word string) string {
		d, err := time.ParseDuration(strings.Trim(word, `"+`) + "s")
		if err != nil {
			panic(err)
		}
		return `"` + began.Add(d).Format(time.RFC3339Nano) + `"`
	})
}

// One rule: a service was down from the last proof that the previous program ran until it was ready here.
func TestDownIsFromTheLastProofThatThePreviousProgramRanToReadyHere(t *testing.T) {
	const ran = `{"node":"a","token":1,"start":"+0","started":"+0.002","ready":"+1","end":"+100","reason":"stop asked","fenced":"no breadcrumb was left"}`
	for name, c := range map[string]struct {
		entries []string
		want    []string // the lengths of each: ran, gap, ready, overlap
	}{
		"supervisor and guardians die together: the dead time is not the old activation's": {
			[]string{
				`{"node":"a","token":1,"start":"+0","started":"+0","ready":"+1","end":"+98","end_min":"+90","end_max":"+92","reason":"lost; fenced: grace"}`,
				`{"node":"b","token":2,"start":"+98","started":"+98.1","ready":"+98.2","fenced":"grace"}`,
			}, []string{"ran 89000-91000 ready 1000", "ran 1800 gap 6200-8200 ready 100"},
		},
		"while it was paused": {
			[]string{
				`{"node":"a","token":1,"start":"+0","started":"+0","ready":"+0","end":"+104","end_min":"+21","end_max":"+23","reason":"lost"}`,
				`{"node":"b","token":2,"start":"+104","started":"+104","ready":"+104","fenced":"grace"}`,
			}, []string{"ran 21000-23000 ready 0", "ran 0 gap 81000-83000 ready 0"},
		},
		"only its latest end is known": {
			[]string{
				`{"node":"a","token":1,"start":"+0","started":"+0","ready":"+0","end":"+50","end_max":"+44","reason":"lost"}`,
				`{"node":"b","token":2,"start":"+50","started":"+50","ready":"+50"}`,
			}, []string{"ran ?-44000 ready 0", "ran 50000 gap 6000-? ready 0"},
		},
		"its guardians wrote the end down": {
			[]string{
				`{"node":"a","token":1,"start":"+0","started":"+0","ready":"+0","end":"+50","end_min":"+50","end_max":"+50","reason":"supervisor lost"}`,
				`{"node":"b","token":2,"start":"+50.01","started":"+50.012","ready":"+50.02"}`,
			}, []string{"ran 50000 ready 0", "ran 49980 gap 20 ready 8"},
		},
		"a switchover to a program that is ready after 5 s": {
			[]string{ran, `{"node":"b","token":2,"start":"+100.005","started":"+100.007","ready":"+105.007"}`},
			[]string{"ran 99000 ready 998", "ran 0 gap 5007 ready 5000"},
		},
		"a node whose binary is missing did not run it, and the outage goes on": {
			[]string{
				ran, `{"node":"b","token":2,"start":"+100.005","started":"+100.007","end":"+101","reason":"program failed","fenced":"no breadcrumb was left"}`,
				`{"node":"a","token":3,"start":"+101.01","started":"+101.012","ready":"+101.5","fenced":"no breadcrumb was left"}`,
			}, []string{"ran 99000 ready 998", "ran 0", "ran 0 gap 1500 ready 488"},
		},
		"an operator confirmed wrongly": {
			[]string{
				`{"node":"a","token":1,"start":"+0","started":"+0","ready":"+1","end":"+100","end_min":"+60","end_max":"+62","reason":"session expired"}`,
				`{"node":"b","token":2,"start":"+80","started":"+80.5","ready":"+81","fenced":"confirmed, after exec failed"}`,
			}, []string{"ran 99000 ready 1000", "ran 19000 ready 500 overlap 19500"},
		},
		"its node slept, and proved the death late": {
			[]string{
				`{"node":"a","token":1,"start":"+0","started":"+0","ready":"+0","end":"+95","end_min":"+40","end_max":"+42","reason":"session expired"}`,
				`{"node":"b","token":2,"start":"+48","started":"+48","ready":"+48","fenced":"grace"}`,
			}, []string{"ran 40000-42000 ready 0", "ran 52000 gap 6000-8000 ready 0"},
		},
		"it proved the death late, and no bounds are known": {
			[]string{
				`{"node":"a","token":1,"start":"+0","started":"+0","ready":"+0","end":"+95","reason":"session expired"}`,
				`{"node":"b","token":2,"start":"+48","started":"+48","ready":"+49","fenced":"agent"}`,
			}, []string{"ran 95000 ready 0", "ran 51000 gap 1000-? ready 1000"},
		},
		"clocks that disagree are no overlap": {
			[]string{ran, `{"node":"b","token":2,"start":"+99.9","started":"+99.9","ready":"+99.95"}`},
			[]string{"ran 99000 ready 998", "ran 50 gap 0 ready 50"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var written []election.Activation
			for _, e := range c.entries {
				written = append(written, parseActivation([]byte(at(e))))
			}
			newest := written[len(written)-1].Token
			var got []string
			for _, a := range chain("db", written, znode{exists: true, stat: zk.Stat{Czxid: newest}}, began.Add(100*time.Second)) {
				got = append(got, lengths(t, a))
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// lengths are the lengths in the JSON of an activation.
func lengths(t *testing.T, a HistoryEntry) string {
	t.Helper()
	text, err := json.Marshal(a)
	must.OK(t, err)
	var m map[string]any
	must.OK(t, json.Unmarshal(text, &m))
	var words []string
	for _, key := range []string{"ran", "gap", "ready", "overlap"} {
		exact, least, most := m[key+"_ms"], m[key+"_min_ms"], m[key+"_max_ms"]
		switch {
		case exact != nil && least == nil && most == nil:
			words = append(words, fmt.Sprintf("%s %v", key, exact))
		case exact != nil:
			words = append(words, fmt.Sprintf("%s %v beside %v-%v", key, exact, least, most))
		case least != nil || most != nil:
			words = append(words, strings.ReplaceAll(fmt.Sprintf("%s %v-%v", key, least, most), "<nil>", "?"))
		case key == "ran":
			words = append(words, "ran ?")
		}
	}
	return strings.Join(words, " ")
}
