package control

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"understudy/election"
	"understudy/supervisor/testbed/must"
)

// Status has what each copy is, whose data it has, how far it is behind the primary, and what its node sees of that.
func TestStatusShowsTheCopiesOfAReplicatedService(t *testing.T) {
	b := newBed(t)
	for _, node := range []string{"a", "b", "c", "d", "e"} {
		s := b.session()
		if node == "a" {
			s.activate("db", node)
		} else {
			s.member("db", node, "standby", "")
		}
	}
	s := b.session()
	lock, err := b.c.read(t.Context(), paths("db").Lock())
	must.OK(t, err)
	token, asked := lock.stat.Czxid, time.Now().UTC()
	tell := func(node string, about election.CopyReport, at *election.At) {
		s.put(paths("db").Copies()+"/"+node, about, zk.FlagEphemeral)
		n := election.Node{Node: node}
		if at != nil {
			n.Copies = map[string]election.At{"db": *at, "other": {Token: token, Position: 7}}
		}
		s.put(election.NodesDir(root)+"/"+node, n, zk.FlagEphemeral)
	}
	tell("a", election.CopyReport{Role: "follower", Promoted: token}, &election.At{Token: token, Position: 100, Time: asked})
	tell("b", election.CopyReport{Role: "follower", Followed: token, Sees: &election.SeenPrimary{Token: token, Well: true}}, &election.At{Token: token, Position: 90, Time: asked})
	tell("c", election.CopyReport{Role: "follower", Followed: 3, Toward: token, Why: "it has no position", Sees: &election.SeenPrimary{Token: token, Why: "no answer"}},
		&election.At{Token: 3, Position: 80, Time: asked.Add(-time.Minute)})
	tell("d", election.CopyReport{Role: "unknown", Followed: token, Why: "role: exit code 1", Sees: &election.SeenPrimary{Token: 2}}, &election.At{Token: token, Position: 120, Time: asked})
	tell("f", election.CopyReport{Role: "follower", Followed: token, Address: "10.0.0.1\x1b[2J"}, nil)
	v := b.status("db").Services[0]
	var got []string
	for _, c := range v.Copies {
		got = append(got, c.Node+": "+c.Words)
	}
	want := strings.ReplaceAll(`a: primary, position 100
b: follower, position 90, 10 behind, reaches the primary
c: follower (it has no position), does not have the data of promotion TOKEN yet, position 80 1m0s ago, does not reach the primary (no answer)
d: unknown (role: exit code 1), position 120, 0 behind
e: unknown (it has reported nothing)
f: unknown (its report cannot be read: "10.0.0.1\x1b[2J" is not plainly an address)`, "TOKEN", jsonOf(token))
	if strings.Join(got, "\n") != want {
		t.Errorf("%s\nwant\n%s", strings.Join(got, "\n"), want)
	}
	if age, ok := v.PositionAge(asked.Add(3 * time.Second)); !ok || age.Round(time.Second) != 3*time.Second {
		t.Errorf("its position is %v old, %v", age, ok)
	}
	wantJSON := `{"node":"b","is":"follower","words":"follower, position 90, 10 behind, reaches the primary","promotion":TOKEN,"position":90,"position_at":AT,"behind":10,"sees_primary":{"token":TOKEN,"well":true}}`
	wantJSON = strings.NewReplacer("TOKEN", jsonOf(token), "AT", jsonOf(asked)).Replace(wantJSON)
	if got := jsonOf(v.Copies[1]); got != wantJSON {
		t.Errorf("%s\nwant\n%s", got, wantJSON)
	}
	s.member("plain", "a", "standby", "")
	if got := jsonOf(b.status("plain")); strings.Contains(got, "copies") {
		t.Errorf("a service that is not replicated has copies: %s", got)
	}
}

// While nobody is promoted no copy is behind.
func TestWithoutAPrimaryNoCopyIsBehind(t *testing.T) {
	at := func(token int64) map[string]election.At {
		return map[string]election.At{"db": {Token: token, Position: 5}}
	}
	told := map[string]election.CopyReport{"a": {Role: "follower", Followed: 9, Promoted: 9}, "b": {Role: "follower", Followed: 9}, "c": {Role: "follower"}}
	nodes := []NodeStatus{{Node: "a", At: at(9)}, {Node: "b", At: at(9)}}
	for _, v := range []ServiceStatus{{Service: "db", Token: 0}, {Service: "db", Active: "a", Token: 12}} {
		for _, c := range copiesOf(v, told, nodes, began) {
			want := map[string]string{"a": "follower, data of promotion 9, position 5", "b": "follower, data of promotion 9, position 5", "c": "follower, has followed no promotion"}[c.Node]
			if c.Words != want || c.Behind != nil {
				t.Errorf("%+v: %+v, want %q", v, c, want)
			}
		}
	}
}

// Before the first promotion status shows what each copy has, and the operator's word that would do.
func TestBeforeTheFirstPromotionStatusShowsWhatEachCopyHas(t *testing.T) {
	b := newBed(t)
	s := b.session()
	s.claim("db")
	why := "no copy was promoted before, and the first promotion needs every node's report: 2 of 3 copies have reported their position (c: it has reported nothing)"
	s.member("db", "a", "standby", why)
	s.member("db", "b", "standby", why)
	folder, zero, ten := paths("db").Copies(), uint64(0), uint64(10)
	s.put(folder, struct{}{}, 0)
	s.put(folder+"/a", election.CopyReport{Role: "follower", Position: &zero, Vacancy: 3}, zk.FlagEphemeral)
	s.put(folder+"/b", election.CopyReport{Role: "follower", Position: &ten, Vacancy: 3}, zk.FlagEphemeral)
	s.member("db", "d", "standby", why)
	s.put(folder+"/d", election.CopyReport{Role: "follower", Same: true, Had: 9, Vacancy: 3}, zk.FlagEphemeral)
	s.put(paths("db").Known(), nil, 0)
	s.put(paths("db").Known()+"/c", nil, 0)
	v := b.status("db").Services[0]
	var got []string
	for _, c := range v.Copies {
		got = append(got, c.Node+": "+c.Words)
	}
	if want := "a: follower, has followed no promotion, position 0 (no data)\nb: follower, has followed no promotion, position 10\nc: unknown (it has reported nothing)\nd: follower, has followed no promotion, position 9, has lost nothing"; strings.Join(got, "\n") != want {
		t.Errorf("%s\nwant\n%s", strings.Join(got, "\n"), want)
	}
	first := v.Problems[len(v.Problems)-1]
	for _, p := range v.Problems {
		if strings.Contains(p.What, "no copy is promoted") {
			first = p
		}
	}
	if !strings.Contains(first.What, why) || first.Hint != "Start the nodes that are missing. If they are lost, choose the copy to begin with:" || strings.Join(first.Do.Words, " ") != "understudy switchover db --to NODE --first" {
		t.Errorf("%+v", first)
	}
	_, err := b.c.Ready(t.Context(), SwitchoverRequest{Service: "db", To: "b"})
	if want := "refused: no node is active; the first node that can takes over without an order: a, b, d are standby, " + why + " (--to NODE --first begins with NODE's copy)"; err == nil || err.Error() != want {
		t.Errorf("%v", err)
	}
	for to, want := range map[string]string{
		"b": "", "a": "the copy on a has no data, and that on b has some (--force promotes it anyway)", "c": "an unknown node",
	} {
		_, err := b.c.Ready(t.Context(), SwitchoverRequest{Service: "db", To: to, First: true, Tell: func(string) {}})
		if (err == nil) != (want == "") || to != "c" && err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("to %s: %v", to, err)
		}
	}
	s.del(folder + "/b") // a copy that cannot tell how far it goes has data as well
	if _, err := b.c.Ready(t.Context(), SwitchoverRequest{Service: "db", To: "a", First: true}); err == nil || !strings.Contains(err.Error(), "the copy on a has no data, and that on d has some") {
		t.Errorf("%v", err)
	}
	s.put(paths("plain").Copies(), election.Promotion{Token: 5}, 0)
	s.claim("plain")
	s.member("plain", "a", "standby", "")
	if _, err := b.c.Ready(t.Context(), SwitchoverRequest{Service: "plain", To: "a", First: true}); err == nil || !strings.Contains(err.Error(), "a copy of plain was promoted before") {
		t.Errorf("%v", err)
	}
}

// What a node says of its config is a warning.
func TestStatusWarnsOfAConfigThatMayLoseData(t *testing.T) {
	v := ServiceStatus{Service: "db", Active: "a", Told: map[string]election.CopyReport{"a": {Doubt: "2 positions of 4 copies"}, "b": {}}}
	v.Members = []MemberStatus{{Node: "a", Role: "active", Health: "ok"}, {Node: "b", Role: "standby", Health: "ok"}}
	if got := Problems(v, began); len(got) != 1 || got[0].Level != Warning || got[0].What != "The config of a may lose data: 2 positions of 4 copies." {
		t.Errorf("%+v", got)
	}
}

// A primary whose writes wait for a copy says so, also beside a standby that is new.
func TestStatusSaysThatWritesWait(t *testing.T) {
	v := ServiceStatus{Service: "db", Active: "a", Token: 7, Live: []string{"a", "b", "c"}, Members: []MemberStatus{
		{Node: "a", Role: "active", Health: "ok"}, {Node: "b", Role: "standby", Health: "ok"}, {Node: "d", Role: "standby", Health: "ok"},
	}}
	const waits = "warning: Writes to a wait until a copy has them, and no copy in the live set follows it (b, c).  "
	newer := CopyStatus{Node: "d", Is: CopyFollower, Promotion: 7}
	for _, c := range []struct {
		b     CopyStatus
		waits bool
	}{
		{CopyStatus{Node: "b", Is: CopyFollower, Promotion: 7}, false},
		{CopyStatus{Node: "b", Is: CopyFollower, Promotion: 6, Toward: 7}, true},
		{CopyStatus{Node: "b", Is: CopyFollower, Promotion: 7, Toward: 8}, true},
		{CopyStatus{Node: "b", Is: CopyUnknown, Promotion: 7}, true},
	} {
		v.Copies = []CopyStatus{{Node: "a", Is: CopyPrimary, Promotion: 7}, newer, c.b}
		if got := words(v); slices.Contains(got, waits) != c.waits {
			t.Errorf("%+v: %q", c.b, got)
		}
	}
	if v.Active = ""; slices.Contains(words(v), waits) {
		t.Error("without a primary nothing waits for a copy")
	}
}

func jsonOf(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(text)
}
