package control

import (
	"errors"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"

	"understudy/election"
)

// Names with numbers are in the order of the numbers.
func TestServicesAreInTheOrderOfTheirNumbers(t *testing.T) {
	b := newBed(t)
	a := b.session()
	for _, service := range []string{"s10", "s2", "db", "s1", "s1-b", "s01"} {
		a.activate(service, "n10")
		a.member(service, "n9", "standby", "")
		a.member(service, "n11", "standby", "")
	}
	names, err := b.c.Services(t.Context())
	if got := strings.Join(names, " "); got != "db s01 s1 s1-b s2 s10" && got != "db s1 s01 s1-b s2 s10" || err != nil {
		t.Errorf("%s: %v", got, err)
	}
	if m := b.status("s2").Services[0].Members; len(m) != 3 || m[1].Node != "n9" || m[2].Node != "n11" {
		t.Errorf("%+v", m)
	}
}

// The loss of a node is told until it is forgotten: what it could run has no standby, unless a third node has.
func TestALostNodeIsListedUntilItIsForgotten(t *testing.T) {
	b := newBed(t)
	a, n := b.session(), b.session()
	a.put(election.NodesDir(root)+"/a", election.Node{Node: "a"}, zk.FlagEphemeral)
	n.put(election.NodesDir(root)+"/b", election.Node{Node: "b"}, zk.FlagEphemeral)
	for _, service := range []string{"db", "web", "held"} {
		a.activate(service, "a")
	}
	n.member("db", "b", "standby", "")
	n.member("web", "b", "standby", "")
	a.put(election.KnownDir(root)+"/a", election.Known{Node: "a", Services: []string{"db", "web", "held"}}, 0)
	a.put(election.KnownDir(root)+"/b", election.Known{Node: "b", Host: "hb", Services: []string{"db", "web"}}, 0) // never of held
	if s := b.status(); len(s.Gone) != 0 || !s.Services[0].HasStandby() || s.Services[1].HasStandby() {
		t.Errorf("while all are there: %+v", s.Gone)
	}
	n.conn.Close()
	s := b.status()
	if len(s.Gone) != 1 {
		t.Fatalf("%+v", s.Gone)
	}
	if g := s.Gone[0]; g.Node != "b" || g.Host != "hb" || g.Seen == nil || g.Bare != 2 || g.Forget().String() != "understudy forget b" ||
		!strings.HasPrefix(g.Words(*g.Seen), "b is gone, last seen 0s ago: 2 services have no standby.") {
		t.Errorf("%+v", g)
	}
	for i, want := range []string{" b is gone.", "", " b is gone."} {
		if got := s.Services[i].Problems[0].What; got != "No standby: a failure of a would stop it."+want {
			t.Errorf("%s: %q, want %q", s.Services[i].Service, got, want)
		}
	}
	if s := b.status("held"); len(s.Gone) != 0 {
		t.Errorf("it could never run held: %+v", s.Gone)
	}
	n = b.session()
	n.del(election.KnownDir(root) + "/b")
	n.put(election.KnownDir(root)+"/b", election.Known{Node: "b", Services: []string{"db", "web"}, Stopped: true}, 0)
	s = b.status()
	if g := s.Gone[0]; g.Words(*g.Seen) != "b is gone, stopped 0s ago: 2 services have no standby." ||
		s.Services[0].Problems[0].What != "No standby: a failure of a would stop it. b is stopped." {
		t.Errorf("it was stopped: %s, %+v", g.Words(*g.Seen), s.Services[0].Problems)
	}
	n.del(election.KnownDir(root) + "/b")
	n.put(election.KnownDir(root)+"/b", election.Known{Node: "b", Services: []string{"db", "web"}}, 0)
	third := b.session()
	third.member("db", "c", "standby", "")
	third.put(election.DrainedDir(root)+"/c", election.Drained{}, 0)
	if s := b.status(); s.Gone[0].Bare != 2 {
		t.Errorf("a drained node is taken for a standby: %+v", s.Gone)
	}
	third.del(election.DrainedDir(root) + "/c")
	if s := b.status("db"); s.Gone[0].Bare != 0 || s.Gone[0].Words(noon) != "b is gone, last seen 0s ago." {
		t.Errorf("with a third node: %+v", s.Gone)
	}
	_, err := b.c.Forget(t.Context(), "d")
	if unknown, ok := errors.AsType[*UnknownError](err); !ok || strings.Join(unknown.Known, " ") != "b" {
		t.Errorf("what lives is proposed: %v", err)
	}
	if what, err := b.c.Forget(t.Context(), "b"); what != "node" || err != nil {
		t.Error(what, err)
	}
	if s := b.status(); len(s.Gone) != 0 {
		t.Errorf("%+v", s.Gone)
	}
}

// A node whose program may still run is not offered to be forgotten: that is refused.
func TestANodeThatIsToBeFencedIsNotOfferedToBeForgotten(t *testing.T) {
	b := newBed(t)
	b.session().crumb("db", "old")
	b.session().put(election.KnownDir(root)+"/old", election.Known{Node: "old", Services: []string{"db"}}, 0)
	if g := b.status().Gone; len(g) != 1 || len(g[0].Forget().Words) != 0 {
		t.Errorf("%+v", g)
	}
}
