package control

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"understudy/election"
)

// holder is the session that holds the lock in what is fuzzed.
const holder = 0x77

// FuzzStatus shows a service whose znodes say anything. Nobody is called active but by a breadcrumb that surely is the lock
// holder's; any other breadcrumb, understood or not, is shown as a fencing that is pending.
func FuzzStatus(f *testing.F) {
	f.Fuzz(func(t *testing.T, lock, crumb, member []byte, held, marked bool) {
		locked := znode{exists: held, data: lock, stat: zk.Stat{EphemeralOwner: holder, Czxid: 9}}
		trail := znode{exists: marked, data: crumb, stat: zk.Stat{Czxid: 5}}
		s := describe("db", locked, trail, []MemberStatus{parseMember("a", znode{data: member})})
		read, err := election.ReadBreadCrumb(crumb)
		switch by := held && marked && err == nil && read.Session == election.SessionName(holder); {
		case by != (s.Active != ""):
			t.Errorf("active: %q", s.Active)
		case marked && !by && s.Fencing == nil:
			t.Error("the breadcrumb is not shown")
		case s.Fencing != nil && (s.Fencing.Node != read.Node || s.Fencing.Token <= 0):
			t.Errorf("fencing %+v, read %+v", s.Fencing, read)
		case held == (s.Lock == ""):
			t.Errorf("lock %q", s.Lock)
		}
		marshals(t, Status{Services: []ServiceStatus{s}, Nodes: []NodeStatus{parseNode("a", znode{data: member})}})
	})
}

// FuzzHistory derives what is shown from entries, one a line, that say anything.
func FuzzHistory(f *testing.F) {
	f.Fuzz(func(t *testing.T, lines []byte, token int64) {
		var written []election.Activation
		for line := range bytes.Lines(lines) {
			written = append(written, parseActivation(line))
		}
		active := 0
		shown := chain("db", written, znode{exists: true, stat: zk.Stat{Czxid: token}}, time.Now())
		for _, a := range shown {
			for _, ms := range []*int64{a.RanMs, a.RanMinMs, a.RanMaxMs, a.GapMs, a.GapMinMs, a.GapMaxMs, a.ReadyMs, a.OverlapMs} {
				if ms != nil && *ms < 0 {
					t.Errorf("a negative length: %+v", a)
				}
			}
			if a.Active {
				active++
				if a.End != nil || a.Token != token {
					t.Errorf("active: %+v", a)
				}
			}
		}
		if len(shown) != len(written) {
			t.Errorf("%d entries of %d", len(shown), len(written))
		}
		marshals(t, shown)
	})
}

func marshals(t *testing.T, v any) {
	t.Helper()
	if _, err := json.Marshal(v); err != nil {
		t.Errorf("--json fails: %v", err)
	}
}
