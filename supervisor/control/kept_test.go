package control

import (
	"slices"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"

	"understudy/election"
)

func TestSilenceIsTwoSessionTimeoutsByTheNewestHeartbeat(t *testing.T) {
	node := func(name string, session, at int64) NodeStatus {
		return NodeStatus{Node: name, Beat: Heartbeat{Session: session, At: at, Timeout: 1000}}
	}
	b := node("b", 2, 10_000)
	for name, c := range map[string]struct {
		nodes []NodeStatus
		lock  Heartbeat
		gone  bool
	}{
		"it sends heartbeats":                       {[]NodeStatus{node("a", 1, 8000), b}, Heartbeat{Session: 1}, false},
		"it sends none":                             {[]NodeStatus{node("a", 1, 7999), b}, Heartbeat{Session: 1}, true},
		"nobody does":                               {[]NodeStatus{node("a", 1, 7999)}, Heartbeat{Session: 1}, false},
		"its timeout is longer":                     {[]NodeStatus{node("a", 1, 7999), b}, Heartbeat{Session: 1, Timeout: 1001}, false},
		"its znode is missing":                      {[]NodeStatus{b}, Heartbeat{Session: 1, At: 7999}, true},
		"its znode is missing and its lock is new":  {[]NodeStatus{b}, Heartbeat{Session: 1, At: 8000}, false},
		"its node is back and the old lock remains": {[]NodeStatus{node("a", 3, 9990), b}, Heartbeat{Session: 1, At: 7999}, true},
		"a restored znode":                          {[]NodeStatus{node("a", 0, 7999), b}, Heartbeat{}, false},
		"no timeout is known":                       {[]NodeStatus{{Node: "a", Beat: Heartbeat{Session: 1}}, {Node: "b", Beat: Heartbeat{2, 10_000, 0}}}, Heartbeat{}, false},
	} {
		gone := silent(c.nodes, c.lock, "a")
		if got := gone[1] == "a"; got != c.gone || len(gone) > 1 || len(gone) == 1 && !c.gone {
			t.Errorf("%s: %v", name, gone)
		}
	}
}

// What blocks other nodes, and the command that deletes it, is named until the session shows a heartbeat again.
func TestWhatASilentSessionKeepsIsNamed(t *testing.T) {
	b := newBed(t)
	one, two := b.session(), b.session()
	one.activate("db", "one")
	place := paths("db").Queue() + "/" + strings.TrimPrefix(one.id(), "0x") + "-n_0000000000"
	one.put(place, struct{}{}, zk.FlagEphemeral)
	two.put(paths("db").Queue()+"/77-n_0000000001", struct{}{}, zk.FlagEphemeral)
	path := func(node string) string { return election.NodesDir(root) + "/" + node }
	for node, a := range map[string]*actor{"one": one, "two": two} {
		a.put(path(node), election.Node{Node: node, SessionMs: 100}, zk.FlagEphemeral)
	}
	last := func(a *actor, node string) int64 { // heartbeat's time
		stat, err := a.conn.Set(path(node), []byte(`{"node":"`+node+`","session_timeout_ms":100}`), -1)
		if err != nil {
			t.Fatal(err)
		}
		return stat.Mtime
	}
	named := func() (all []string) {
		s := b.status()
		for _, f := range s.Services[0].Problems {
			if strings.HasPrefix(f.What, "Session "+one.id()+" of one has sent no heartbeat") && f.Level == Fault && f.Do.Here {
				all = append(all, f.Do.String())
			}
		}
		for _, n := range s.Nodes {
			if n.Session != 100 || n.Silent != (len(n.Warnings) > 0) {
				t.Errorf("%+v", n)
			}
			for _, w := range n.Warnings {
				all = append(all, n.Node+": "+w)
			}
		}
		return all
	}
	for at := last(one, "one"); last(two, "two") <= at+200; {
	}
	remove := "zkCli.sh -server " + b.addr + " delete "
	got := named()
	if len(got) != 3 || !slices.Equal(got[:2], []string{remove + paths("db").Lock(), remove + place}) ||
		!strings.HasPrefix(got[2], "one: session "+one.id()) || !strings.Contains(got[2], "delete "+path("one")) {
		t.Errorf("named: %q", got)
	}
	secret := *b.c
	secret.auth = &election.Auth{}
	if s, err := secret.Status(t.Context()); err != nil || s.Services[0].Problems[0].Do.String() != "zkCli.sh -server "+b.addr ||
		!strings.Contains(s.Services[0].Problems[0].Hint, "`delete "+paths("db").Lock()+"`") {
		t.Errorf("with credentials: %+v, %v", s, err)
	}
	last(one, "one")
	if got := named(); len(got) > 0 {
		t.Errorf("it has sent a heartbeat, and still there is named: %q", got)
	}
}

// So is a place in the queue of a session whose znodes were deleted by hand, lock and node, while nobody has the lock.
func TestAPlaceOfASessionThatShowsNothingElseIsNamed(t *testing.T) {
	b := newBed(t)
	kept, live := b.session(), b.session()
	place := paths("db").Queue() + "/" + strings.TrimPrefix(kept.id(), "0x") + "-n_0000000000"
	kept.put(place, struct{}{}, zk.FlagEphemeral)
	node := func(name string) string { return election.NodesDir(root) + "/" + name }
	live.put(paths("db").Queue()+"/77-n_0000000001", struct{}{}, zk.FlagEphemeral)
	live.put(node("live"), election.Node{Node: "live", SessionMs: 100}, zk.FlagEphemeral)
	named := func() (all []string) {
		for _, k := range b.status().Services[0].Kept {
			all = append(all, k.Node+": "+k.Path)
		}
		return all
	}
	_, made, err := kept.conn.Exists(place)
	for at := made.Mtime; err == nil && at <= made.Mtime+200; {
		var beat *zk.Stat
		if beat, err = live.conn.Set(node("live"), []byte(`{"node":"live","session_timeout_ms":100}`), -1); err == nil {
			at = beat.Mtime
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	if got := named(); !slices.Equal(got, []string{"an unknown node: " + place}) {
		t.Errorf("named: %q", got)
	}
	kept.put(node("kept"), election.Node{Node: "kept", SessionMs: 100}, zk.FlagEphemeral)
	if got := named(); len(got) > 0 {
		t.Errorf("its node is there, and still there is named: %q", got)
	}
	if err := kept.conn.Delete(node("kept"), -1); err != nil {
		t.Fatal(err)
	}
	live.put(paths("db").Lock(), election.Lock{Node: "live"}, zk.FlagEphemeral)
	if got := named(); len(got) > 0 {
		t.Errorf("nobody waits for the place, and there is named: %q", got)
	}
}
