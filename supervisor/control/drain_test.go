package control

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"understudy/election"
	"understudy/supervisor/testbed/must"
)

func TestADrainIsRefusedWhereNoOtherNodeIsFit(t *testing.T) {
	b, one, two := pair(t)
	one.activate("web", "one")
	d := Draining{Node: "one", By: "me", Why: "new disks"}
	_, _, err := b.c.Drain(t.Context(), d)
	if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "no other node could take web: no other node has it (--force") || strings.Contains(err.Error(), "db") {
		t.Fatal(err)
	}
	two.member("web", "two", "standby", "")
	changed, leaving, err := b.c.Drain(t.Context(), d)
	if !changed || err != nil || !slices.Equal(services(leaving), []string{"db", "web"}) {
		t.Fatal(changed, leaving, err)
	}
	if changed, _, err := b.c.Drain(t.Context(), d); changed || err != nil {
		t.Errorf("drained a second time: %v", err)
	}
	s := b.status()
	if len(s.Drained) != 1 || s.Drained[0].Node != "one" || s.Drained[0].By != "me" || s.Drained[0].Why != "new disks" || s.Drained[0].Since == nil {
		t.Fatalf("%+v", s.Drained)
	}
	if db := s.service("db"); db.Members[0].Drained == nil || !slices.ContainsFunc(db.Problems, func(f Problem) bool {
		return f.Node == "one" && f.Level == Warning && strings.HasPrefix(f.What, "one is drained by me ") && strings.HasSuffix(f.What, "ago: new disks.")
	}) {
		t.Errorf("%+v", db.Problems)
	}
	if _, err := b.c.Ready(t.Context(), SwitchoverRequest{Service: "db", To: "two"}); err != nil {
		t.Error(err)
	}
	if _, _, err := b.c.Drain(t.Context(), Draining{Node: "two", By: "bob", Why: "fans"}); err != nil {
		t.Error("a standby cannot be drained:", err)
	}
	for _, force := range []bool{false, true} {
		_, err := b.c.Ready(t.Context(), SwitchoverRequest{Service: "db", To: "two", Force: force})
		if !errors.Is(err, ErrRefused) || !strings.HasSuffix(err.Error(), "two is drained by bob 0s ago: fans: `understudy undrain two` first") {
			t.Errorf("force %v: %v", force, err)
		}
	}
	one.release("db")
	one.become("db", election.Member{Node: "one", Role: "standby", Health: "unfit", Why: "drained by me"})
	_, err = b.c.Ready(t.Context(), SwitchoverRequest{Service: "db"})
	if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "one is standby, drained by me") || !strings.HasSuffix(err.Error(), "(`understudy undrain one` first)") {
		t.Errorf("all are drained: %v", err)
	}
	for _, want := range []bool{true, false} {
		if changed, err := b.c.Undrain(t.Context(), "one", "bob@op"); changed != want || err != nil {
			t.Error(changed, err)
		}
	}
	if z, err := b.c.read(t.Context(), election.DrainedDir(root)); err != nil || election.ReadUndrained(z.data).By != "bob@op" {
		t.Errorf("it is not known who undrained it: %s, %v", z.data, err)
	}
}

func TestAPausedServiceIsNotDrainedUnlessForced(t *testing.T) {
	b, _, _ := pair(t)
	if _, err := b.c.Pause(t.Context(), "db", true, "me", ""); err != nil {
		t.Fatal(err)
	}
	if _, _, err := b.c.Drain(t.Context(), Draining{Node: "one"}); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "db is paused by me: `understudy resume db` first (--force drains one anyway, and leaves there what is paused)") {
		t.Error(err)
	}
	changed, leaving, err := b.c.Drain(t.Context(), Draining{Node: "one", Force: true})
	if !changed || err != nil || !slices.Equal(leaving, []Departure{{Service: "db", Stays: true}}) {
		t.Error(changed, leaving, err)
	}
}

// Whoever forces a drain reads which services move, and which are down from now on.
func TestAForcedDrainTellsWhatStops(t *testing.T) {
	b, one, two := pair(t)
	one.activate("web", "one")
	_, leaving, err := b.c.Drain(t.Context(), Draining{Node: "one", Force: true})
	if want := []Departure{{Service: "db"}, {Service: "web", Stops: "no other node has it"}}; err != nil || !slices.Equal(leaving, want) {
		t.Errorf("%+v, %v", leaving, err)
	}
	one.release("db")
	one.become("db", election.Member{Node: "one", Role: "standby", Health: "unfit", Why: "drained by me"})
	two.lock("db", "two")
	two.crumb("db", "two")
	_, leaving, err = b.c.Drain(t.Context(), Draining{Node: "two", Force: true})
	if want := []Departure{{Service: "db", Stops: "one is standby, drained by me"}}; err != nil || !slices.Equal(leaving, want) {
		t.Errorf("everything is drained: %+v, %v", leaving, err)
	}
}

// The time may run out in the middle of a question to ZooKeeper, which is no sign that ZooKeeper does not answer.
func TestAWaitThatRunsOutOfTimeBlamesNoServer(t *testing.T) {
	b, _, _ := pair(t)
	late, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
	defer cancel()
	if _, err := b.c.Empty(late, "one", nil); !errors.Is(err, context.DeadlineExceeded) || strings.Contains(err.Error(), "no answer") {
		t.Error(err)
	}
}

func TestANodeThatNobodyKnowsIsDrainedByForceOnly(t *testing.T) {
	b, _, _ := pair(t)
	var unknown *UnknownError
	if _, _, err := b.c.Drain(t.Context(), Draining{Node: "thre"}); !errors.As(err, &unknown) || !slices.Equal(unknown.Known, []string{"one", "two"}) {
		t.Error(err)
	}
	if changed, leaving, err := b.c.Drain(t.Context(), Draining{Node: "three", Force: true}); !changed || len(leaving) > 0 || err != nil {
		t.Error(changed, leaving, err)
	}
	if _, _, err := b.c.Drain(t.Context(), Draining{Node: "a/b", Force: true}); !errors.Is(err, ErrUnknown) {
		t.Error(err)
	}
	if changed, err := b.c.Undrain(t.Context(), "thre", "me"); changed || !errors.As(err, &unknown) || !slices.Equal(unknown.Known, []string{"one", "three", "two"}) {
		t.Error(changed, err)
	}
}

func TestADrainIsWaitedForUntilNothingIsActiveThere(t *testing.T) {
	b, one, two := pair(t)
	_, leaving, err := b.c.Drain(t.Context(), Draining{Node: "one"})
	must.OK(t, err)
	brief, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := b.c.Empty(brief, "one", leaving); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "one stays drained, but has not given up yet: db") {
		t.Error(err)
	}
	one.release("db")
	two.lock("db", "two")
	two.crumb("db", "two")
	one.become("db", election.Member{Node: "one", Role: "standby", Health: "ok"}) // it may take it back any moment
	soon, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := b.c.Empty(soon, "one", leaving); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	one.become("db", election.Member{Node: "one", Role: "standby", Health: "unfit"})
	if left, err := b.c.Empty(t.Context(), "one", leaving); err != nil || !slices.Equal(left, []Departure{{Service: "db", To: "two"}}) {
		t.Error(left, err)
	}
}

// What an operator types next, a switchover or the drain of another node, needs the node that was drained.
func TestUndrainReturnsWhenTheNodeStandsAgain(t *testing.T) {
	b, one, two := pair(t)
	out := election.Drained{By: "me", Why: "new disks"}
	drain := func() {
		two.become("db", election.Member{Node: "two", Role: election.RoleStandby, Health: election.HealthUnfit, Why: out.Words()})
		two.put(election.DrainedDir(root)+"/two", out, 0)
	}
	drain()
	type answer struct {
		changed bool
		err     error
	}
	done := make(chan answer, 1)
	go func() {
		changed, err := b.c.Undrain(t.Context(), "two", "me")
		done <- answer{changed, err}
	}()
	for b.has(election.DrainedDir(root) + "/two") {
		time.Sleep(10 * time.Millisecond)
	}
	select {
	case got := <-done:
		t.Fatalf("it did not wait: %+v", got)
	case <-time.After(300 * time.Millisecond):
	}
	two.become("db", election.Member{Node: "two", Role: election.RoleStandby, Health: election.HealthOK})
	if got := <-done; !got.changed || got.err != nil {
		t.Errorf("%+v", got)
	}
	if _, err := b.c.Ready(t.Context(), SwitchoverRequest{Service: "db", To: "two"}); err != nil {
		t.Error(err)
	}
	if _, _, err := b.c.Drain(t.Context(), Draining{Node: "one"}); err != nil {
		t.Error(err)
	}
	one.del(election.DrainedDir(root) + "/one")

	drain() // and now it does not hear of it
	brief, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if changed, err := b.c.Undrain(brief, "two", "me"); !changed || err != nil {
		t.Error(changed, err)
	}
	drain()
	two.become("db", election.Member{Node: "two", Role: election.RoleStandby, Health: election.HealthUnfit, Why: "precheck: no"})
	began := time.Now()
	if changed, err := b.c.Undrain(t.Context(), "two", "me"); !changed || err != nil || time.Since(began) > arriving {
		t.Error(changed, err, time.Since(began))
	}
}

// A node whose copy is known is known, and `forget` alone makes it unknown.
func TestForgetShrinksTheListOfCopies(t *testing.T) {
	b := newBed(t)
	one := b.session()
	one.activate("db", "one")
	one.member("db", "two", "standby", "")
	for _, node := range []string{"one", "two", "three"} {
		one.put(paths("db").Known()+"/"+node, nil, 0)
		one.put(paths("other").Known()+"/"+node, nil, 0)
	}
	if got := b.status("db").Services[0]; len(got.Copies) != 3 || got.Copies[1].Node != "three" || got.Copies[1].Why != "it has reported nothing" {
		t.Errorf("%+v", got.Copies)
	}
	if _, err := b.c.Forget(t.Context(), "two"); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "two has a part in db") {
		t.Error(err)
	}
	if what, err := b.c.Forget(t.Context(), "three"); what != "node" || err != nil {
		t.Error(what, err)
	}
	for _, service := range []string{"db", "other"} {
		if known := paths(service).Known(); b.has(known+"/three") || !b.has(known+"/two") || !b.has(known+"/one") {
			t.Error(service)
		}
	}
	if _, err := b.c.Forget(t.Context(), "three"); !errors.Is(err, ErrUnknown) {
		t.Error(err)
	}
	if what, err := b.c.Forget(t.Context(), "other"); what != "service" || err != nil || b.has(paths("other").Dir()) {
		t.Error(what, err)
	}
}

func TestWhatLivesIsNotForgotten(t *testing.T) {
	b := newBed(t)
	one := b.session()
	one.activate("db", "one")
	one.put(paths("db").Control(), election.Control{}, 0)
	one.put(paths("db").History()+"/n_1", election.Activation{Node: "one"}, 0)
	one.put(election.NodesDir(root)+"/one", election.Node{Node: "one"}, zk.FlagEphemeral)
	one.put(election.DrainedDir(root)+"/one", election.Drained{By: "me"}, 0)
	for _, step := range []struct {
		name, why string
		next      func()
	}{
		{"db", "one holds the lock of db", func() { one.del(paths("db").Lock()) }},
		{"db", "the program may still run on one", func() { one.del(paths("db").Crumb()) }},
		{"db", "one has it in its config", func() {}},
		{"one", "one is connected", func() { one.del(election.NodesDir(root) + "/one") }},
		{"one", "one has a part in db", func() { one.del(paths("db").Members() + "/one") }},
	} {
		if _, err := b.c.Forget(t.Context(), step.name); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), step.why) {
			t.Errorf("%s: %v, not %q", step.name, err, step.why)
		}
		step.next()
	}
	for name, want := range map[string]string{"db": "service", "one": "node"} {
		if what, err := b.c.Forget(t.Context(), name); what != want || err != nil {
			t.Errorf("%s: %q, %v", name, what, err)
		}
		if _, err := b.c.Forget(t.Context(), name); !errors.Is(err, ErrUnknown) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if b.has(paths("db").Dir()) || b.has(election.DrainedDir(root)+"/one") {
		t.Error("something is left")
	}
}

// A cluster whose root is among the services of another one is no service of that.
func TestAnotherClusterIsNotForgotten(t *testing.T) {
	b := newBed(t)
	inner := election.Paths{Root: root + "/services", Service: "db"}
	s := b.session()
	s.put(inner.History()+"/n_1", election.Activation{Node: "one"}, 0)
	s.put(election.NodesDir(inner.Root)+"/one", election.Node{Node: "one"}, 0)
	for _, name := range []string{"services", "nodes"} {
		if _, err := b.c.Forget(t.Context(), name); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "perhaps of another cluster") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if !b.has(inner.History() + "/n_1") {
		t.Error("it is gone")
	}
	if _, err := b.c.Forget(t.Context(), "nosuch"); err == nil || !strings.Contains(err.Error(), "there is: ") {
		t.Errorf("what there is: %v", err)
	}
}
