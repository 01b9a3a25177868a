package control

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"

	"understudy/election"
)

func TestARollTakesNodesWithoutServicesFirstAndLeavesOutThoseOfOthers(t *testing.T) {
	s := Status{
		Services: []ServiceStatus{{Service: "x", Lock: "a"}, {Service: "y", Lock: "a"}, {Service: "z", Lock: "b"}},
		Nodes:    []NodeStatus{{Node: "a", Host: "ha"}, {Node: "b", Host: "hb"}, {Node: "c", Host: "hc"}, {Node: "d", Host: "hd"}},
		Drained:  []DrainedNode{{Node: "d", Words: "drained by ann"}},
		Gone:     []GoneNode{{Node: "e", Host: "he"}},
	}
	var r Roll
	for _, want := range []string{"c", "b", "a", ""} {
		node, host, others := r.Next(s)
		if node != want || node != "" && host != "h"+node || strings.Join(others, ", ") != "d is drained by ann, e is gone" {
			t.Errorf("after %v: %q on %q, left out %q", r.Done, node, host, others)
		}
		r.Done = append(r.Done, node)
	}
	r = Roll{Done: []string{"c"}}
	s.Nodes = append(s.Nodes[:1], s.Nodes[2:]...)
	s.Drained = append(s.Drained, DrainedNode{Node: "b", Why: rolls + "x"})
	s.Gone = append(s.Gone, GoneNode{Node: "b", Host: "hb"})
	if node, host, others := r.Next(s); node != "b" || host != "hb" || len(others) != 2 {
		t.Errorf("it was broken off on b, which has not come back: %q on %q, left out %q", node, host, others)
	}
}

func TestARollIsRefusedWithoutWordsOfAnotherCommand(t *testing.T) {
	b := newBed(t)
	b.session().takes("web", "n1")
	_, err := b.c.Step(t.Context(), &Roll{Command: "reboot"}, "n1", "me", func(context.Context) error { return nil })
	if !errors.Is(err, ErrRefused) || !strings.HasSuffix(err.Error(), "no other node could take web: no other node has it") {
		t.Errorf("got %v", err)
	}
}

func TestARollThatIsNotFinishedIsNotForgotten(t *testing.T) {
	b := newBed(t)
	a := b.session()
	a.put(paths("web").Members()+"/n1", election.Member{Node: "n1", Role: election.RoleStandby, Health: election.HealthUnfit}, zk.FlagEphemeral)
	a.put(election.NodesDir(root)+"/n1", election.Node{Node: "n1"}, zk.FlagEphemeral)
	begin := func(c *Cluster, command string, anew bool) error {
		_, err := c.BeginRoll(t.Context(), command, "me", anew)
		return err
	}
	if err := begin(b.c, "reboot", false); err != nil {
		t.Fatal(err)
	}
	other := bedOn(t, b.addr)
	if err := begin(other.c, "reboot", false); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "by me") {
		t.Errorf("two at once: %v", err)
	}
	r := &Roll{Command: "reboot"}
	broken := errors.New("no")
	if left, err := b.c.Step(t.Context(), r, "n1", "me", func(context.Context) error { return broken }); !errors.Is(err, broken) || !left {
		t.Errorf("the command failed: %v, left drained: %v", err, left)
	}
	undrain := func(ctx context.Context) error {
		_, err := b.c.Undrain(ctx, "n1", "ann")
		return err
	}
	if _, err := b.c.Step(t.Context(), r, "n1", "me", undrain); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "somebody has undrained n1") {
		t.Errorf("a colleague has ended the drain: %v", err)
	}
	if left, err := b.c.Step(t.Context(), r, "n1", "me", func(context.Context) error { return broken }); !errors.Is(err, broken) || !left {
		t.Errorf("again: %v, left drained: %v", err, left)
	}
	if s := b.status(); len(r.Done) > 0 || s.drained("n1") == nil {
		t.Errorf("after a failure: done %v, drained %v", r.Done, s.Drained)
	}
	b.c.Close()
	if err := begin(other.c, "upgrade", false); !errors.Is(err, ErrRefused) {
		t.Errorf("another command: %v", err)
	}
	for _, anew := range []bool{false, true} {
		command := map[bool]string{false: "reboot", true: "upgrade"}[anew]
		if err := begin(other.c, command, anew); err != nil {
			t.Errorf("%s: %v", command, err)
		}
	}
}
