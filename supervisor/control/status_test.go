package control

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"understudy/election"
	"understudy/supervisor/testbed/must"
)

func TestTheActiveNodeIsTheOneWhoseSessionHoldsLockAndBreadcrumb(t *testing.T) {
	b := newBed(t)
	one, two := b.session(), b.session()
	two.member("db", "a-standby", "standby", "")
	one.activate("db", "m-active")
	one.put(election.NodesDir(root)+"/m-active", election.Node{Node: "m-active", Pid: 7, Version: "1"}, zk.FlagEphemeral)
	two.member("other", "a-standby", "standby", "")

	s := b.status("db")
	if len(s.Services) != 1 || len(s.Nodes) != 1 || s.Nodes[0].Node != "m-active" {
		t.Fatalf("the status of one service is %+v", s)
	}
	db := s.Services[0]
	lock, _ := b.c.read(t.Context(), paths("db").Lock())
	if db.Active != "m-active" || db.Host != "m-active.example" || db.Pid != 7 || db.Token != lock.stat.Czxid || !db.Since.Equal(began) {
		t.Errorf("active is %+v", db)
	}
	if db.Fencing != nil {
		t.Errorf("fencing %+v", db.Fencing)
	}
	if got := memberNames(db); !slices.Equal(got, []string{"m-active", "a-standby"}) {
		t.Errorf("members are %v: the active one comes first", got)
	}
}

// Only nodes of the same service have to run the same file.
func TestNodesOfAServiceThatRunOtherFilesAreGrouped(t *testing.T) {
	b := newBed(t)
	for i, sum := range []string{"x", "y", "y", "z", ""} {
		s, node := b.session(), string(rune('a'+i))
		s.put(election.NodesDir(root)+"/"+node, election.Node{Node: node, Sum: sum}, zk.FlagEphemeral)
		if node != "d" {
			s.member("db", node, "standby", "")
		} else {
			s.member("web", node, "standby", "")
		}
	}
	s := b.status()
	if got := fmt.Sprint(s.Services[0].Files, s.Services[1].Files, s.Nodes[0].Sum); got != "[[b c] [a]] []x" {
		t.Error(got)
	}
}

// Whose promises are counted on is said of who is active, and only where there are any.
func TestThoseWhoAreCountedOnAreNamed(t *testing.T) {
	var lock znode
	lock.exists, lock.stat.EphemeralOwner, lock.data = true, 7, []byte(`{"node":"a"}`)
	trail := func(failsafe string) znode {
		return znode{exists: true, data: []byte(`{"node":"a","session":"` + election.SessionName(7) + `","lease_ms":6000` + failsafe + `}`)}
	}
	for failsafe, want := range map[string][]string{
		"": nil, `,"failsafe":{"members":[]}`: nil, `,"failsafe":{"members":[{"node":"b"},{"node":"c"}]}`: {"b", "c"},
	} {
		if got := describe("db", lock, trail(failsafe), nil); got.Active != "a" || !slices.Equal(got.Failsafe, want) {
			t.Errorf("%s: %+v", failsafe, got)
		}
	}
}

// An order is shown as long as it is for the activation that lasts, and so is what is wrong.
func TestASwitchoverIsShownUntilItIsDone(t *testing.T) {
	b := newBed(t)
	b.session().activate("db", "a")
	order := func(token int64) {
		err := b.c.order(t.Context(), "db", func(o election.Control) (election.Control, bool) {
			o.Switchover = &election.Switchover{Order: election.Order{ID: "1", Token: token, By: "me"}, From: "a", To: "b", Deadline: began}
			return o, true
		})
		must.OK(t, err)
	}
	token := b.status().Services[0].Token
	order(token - 1)
	if db := b.status().Services[0]; db.Handing != nil {
		t.Errorf("an order for a previous activation is shown: %+v", db.Handing)
	}
	order(token)
	db := b.status().Services[0]
	if want := (Handing{From: "a", To: "b", By: "me", Deadline: began}); db.Handing == nil || *db.Handing != want {
		t.Errorf("got %+v, want %+v", db.Handing, want)
	}
	if len(db.Problems) != 2 || db.Problems[0].Do.String() == "" || db.Problems[1].What != "me has ordered a switchover from a to b." {
		t.Errorf("faults: %+v", db.Problems)
	}
}

func TestALockHolderThatFencesIsNotActive(t *testing.T) {
	b := newBed(t)
	old, fresh := b.session(), b.session()
	old.crumb("db", "old")
	fresh.lock("db", "new")
	db := b.status().Services[0]
	if db.Active != "" || db.Lock != "new" || db.Fencing == nil || db.Fencing.Node != "old" || db.Fencing.By != "new" {
		t.Errorf("got %+v fencing %+v", db, db.Fencing)
	}
	if len(db.Members) != 1 || db.Members[0].Role != "fencing" {
		t.Errorf("a lock holder that is no member yet is shown as %+v", db.Members)
	}
}

func TestABreadcrumbWithoutLockIsAFencingByNobody(t *testing.T) {
	b := newBed(t)
	old := b.session()
	old.crumb("db", "old")
	old.member("db", "new", "failed", "formerly refused")
	db := b.status().Services[0]
	if db.Active != "" || db.Fencing == nil || db.Fencing.Node != "old" || db.Fencing.By != "" {
		t.Errorf("got %+v fencing %+v", db, db.Fencing)
	}
}

func TestWhatCannotBeReadIsShownAsUnknown(t *testing.T) {
	b := newBed(t)
	a := b.session()
	a.put(paths("db").Crumb(), []byte("{"), 0)
	a.put(paths("db").Lock(), []byte("?"), zk.FlagEphemeral)
	a.put(paths("db").Members()+"/x", []byte("?"), zk.FlagEphemeral)
	db := b.status().Services[0]
	if db.Active != "" || db.Lock != "unknown" || db.Fencing == nil || db.Fencing.Node != "" || db.Members[1].Role != "unknown" {
		t.Errorf("got %+v", db)
	}
}

func TestHistoryIsNewestFirstWithGaps(t *testing.T) {
	b := newBed(t)
	a := b.session()
	a.activate("db", "node-2")
	lock, _ := b.c.read(t.Context(), paths("db").Lock())
	end := began.Add(time.Minute)
	second, closed := end.Add(12*time.Millisecond), end.Add(time.Minute) // by the next one, which took the time of its own start
	for _, e := range []election.Activation{
		{Node: "node-1", Token: 1, Start: began, Started: &began, Ready: &began, End: &end, Reason: "stop asked", Fenced: "no breadcrumb was left"},
		{Node: "node-3", Token: 2, Start: second, Started: &second, Ready: &second, End: &closed, Reason: "lost"},
		{Node: "node-2", Token: lock.stat.Czxid, Start: closed, Started: &closed, Ready: &closed, Fenced: "grace"},
	} {
		a.put(paths("db").History()+"/n_", e, zk.FlagSequence)
	}
	got, err := b.c.History(t.Context(), "db")
	if err != nil || len(got) != 3 {
		t.Fatalf("got %v, %v", got, err)
	}
	if got[0].Node != "node-2" || !got[0].Active || got[0].RanMs == nil || got[0].GapMs != nil {
		t.Errorf("the present one is %+v", got[0])
	}
	if got[1].Active || got[1].RanMs != nil || *got[1].GapMs != 12 {
		t.Errorf("one that was lost is %+v", got[1])
	}
	if *got[2].RanMs != 60000 || got[2].GapMs != nil || got[2].Reason != "stop asked" {
		t.Errorf("the first one is %+v", got[2])
	}
}

// A lock that somebody made by hand, as an ordinary znode, is never given back: nobody could tell why nobody runs.
func TestALockOfNobodyIsNamed(t *testing.T) {
	b := newBed(t)
	actor := b.session()
	actor.member("db", "one", "standby", "")
	actor.put(paths("db").Lock(), election.Lock{}, 0)
	s := b.status("db").Services[0]
	if len(s.Problems) != 1 || s.Problems[0].Level != Fault || !strings.Contains(s.Problems[0].What, "Delete "+paths("db").Lock()) {
		t.Errorf("%+v", s.Problems)
	}
}

// Right after a switchover both nodes' own words are older than the lock: nobody sees the wrong one active.
func TestTheLockIsNewerThanWhatNodesSayOfThemselves(t *testing.T) {
	b := newBed(t)
	old, fresh := b.session(), b.session()
	old.become("db", election.Member{Node: "old", Role: "active", Health: "ok", Token: 1})
	fresh.become("db", election.Member{Node: "new", Role: "standby", Health: "ok"})
	fresh.lock("db", "new")
	fresh.crumb("db", "new")
	var got []string
	for _, m := range b.status().Services[0].Members {
		got = append(got, m.Node+" "+string(m.Role)+" "+string(m.Health))
	}
	if want := []string{"new active starting", "old stopping ok"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// What was to run once, and has, is done, and not down: only a failure is a fault. Whatever stands by, or may still run, counts more.
func TestWhatHasRunOnceIsDone(t *testing.T) {
	b := newBed(t)
	a, end := b.session(), began.Add(time.Minute)
	for _, c := range []struct {
		service, exit string
		reason        election.Reason
		verdict       Verdict
		words         string
	}{
		{"well", "exit code 0", election.ChildOnce, Done, "n1 ran it once: exit code 0"},
		{"older", "", election.ChildOnce, Done, "n1 ran it once: it ended"},
		{"ill", "exit code 3", election.ChildOnce, Unhealthy, "n1 ran it once, and it failed: exit code 3."},
		{"other", "", election.StopAsked, Down, "DOWN: no supervisor that has this service in its config is connected."},
		{"standing", "exit code 0", election.ChildOnce, Down, ""},
	} {
		if c.service == "standing" {
			a.member(c.service, "n2", election.RoleStandby, "")
		}
		a.put(paths(c.service).History()+"/n_1", election.Activation{Node: "n1", Token: 1, Start: began, Ready: &began, End: &end, Reason: c.reason, Exit: c.exit}, 0)
		v := b.status(c.service).Services[0]
		if verdict, words := v.Judge(); verdict != c.verdict || !strings.HasSuffix(words, c.words) || (v.Ran != nil) != (c.reason == election.ChildOnce && c.service != "standing") {
			t.Errorf("%s: %v, %q, %+v", c.service, verdict, words, v.Ran)
		}
	}
}
