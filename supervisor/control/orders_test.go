package control

import (
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"understudy/election"
	"understudy/supervisor/testbed/must"
)

// orders is what the control znode says.
func (b *bed) orders(service string) map[string]any {
	b.Helper()
	n, err := b.c.read(b.Context(), paths(service).Control())
	must.OK(b, err)
	all := map[string]any{}
	if len(n.data) > 0 {
		must.OK(b, json.Unmarshal(n.data, &all))
	}
	return all
}

func TestAPauseIsWrittenAndTakenBack(t *testing.T) {
	b := newBed(t)
	b.session().activate("db", "one")
	for i, c := range []struct{ paused, changed bool }{{true, true}, {true, false}, {false, true}, {false, false}} {
		changed, err := b.c.Pause(t.Context(), "db", c.paused, "me@here", "maintenance")
		if err != nil || changed != c.changed {
			t.Fatalf("order %d: changed %v, %v", i, changed, err)
		}
		s, err := b.c.Status(t.Context(), "db")
		if err != nil || s.Services[0].Paused != c.paused || c.paused && s.Services[0].Order != "paused by me@here: maintenance" {
			t.Fatalf("order %d: %+v, %v", i, s, err)
		}
	}
}

// A colleague's pause outlasts a stop: the node that is active after the start restores it, unless somebody resumes the service first.
func TestAStopKeepsThePause(t *testing.T) {
	for _, resumed := range []bool{false, true} {
		b := newBed(t)
		b.session().activate("db", "one")
		for _, order := range []func() (bool, error){
			func() (bool, error) { return b.c.Pause(t.Context(), "db", true, "ann", "change 4711") },
			func() (bool, error) { return b.c.Stop(t.Context(), "db", true, "bob", "too old") },
		} {
			if changed, err := order(); !changed || err != nil {
				t.Fatal(changed, err)
			}
		}
		if v := b.status("db").Services[0]; v.Before != "paused by ann: change 4711" || v.Order != "stopped by bob: too old" {
			t.Errorf("%+v", v)
		}
		changed, err := b.c.Pause(t.Context(), "db", true, "me", "")
		if changed || !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "db is stopped by bob: too old (0s ago): `understudy start db` first") {
			t.Errorf("paused: %v, %v", changed, err)
		}
		if changed, err := b.c.Stop(t.Context(), "db", false, "bob", ""); !changed || err != nil {
			t.Error(changed, err)
		}
		if resumed {
			if changed, err := b.c.Pause(t.Context(), "db", false, "me", ""); !changed || err != nil {
				t.Error(changed, err)
			}
		}
		all := b.orders("db")
		before, _ := all["before"].(map[string]any)
		if all["paused"] != nil || (before == nil) != resumed || !resumed && (before["by"] != "ann" || before["why"] != "change 4711") {
			t.Errorf("resumed %v: %v", resumed, all)
		}
	}
}

func TestAnOrderKeepsWhatItDoesNotKnow(t *testing.T) {
	b := newBed(t)
	actor := b.session()
	actor.activate("db", "one")
	actor.put(paths("db").Control(), map[string]any{"later": map[string]any{"x": 1}, "why": "old"}, 0)
	if _, err := b.c.Pause(t.Context(), "db", true, "me", ""); err != nil {
		t.Fatal(err)
	}
	all := b.orders("db")
	if _, kept := all["later"]; !kept || all["paused"] != true || all["by"] != "me" {
		t.Errorf("it is now %v", all)
	}
	if _, stale := all["why"]; stale {
		t.Errorf("a reason that nobody gave is left: %v", all)
	}
}

func TestOrdersAtTheSameTimeAreBothCarriedOut(t *testing.T) {
	b := newBed(t)
	b.session().activate("db", "one")
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			err := b.c.order(t.Context(), "db", func(c election.Control) (election.Control, bool) {
				c.Why += string(rune('a' + i))
				return c, true
			})
			must.Report(t, err)
		})
	}
	wg.Wait()
	if why := b.orders("db")["why"].(string); len(why) != 8 {
		t.Errorf("of 8 orders these are left: %q", why)
	}
}

// A pause while the active node gives the service away would leave it with nobody: those who could take it may not.
func TestAPauseWaitsForASwitchover(t *testing.T) {
	b := newBed(t)
	actor := b.session()
	actor.activate("db", "one")
	pending := func(until time.Duration) {
		actor.put(paths("db").Control(), election.Control{Switchover: &election.Switchover{
			Order: election.Order{ID: "x", Token: 1, By: "me"}, From: "one", To: "two", Deadline: time.Now().Add(until).UTC(),
		}}, 0)
	}
	pending(time.Minute)
	if _, err := b.c.Pause(t.Context(), "db", true, "you", ""); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "me has ordered that one give db to two") {
		t.Errorf("paused: %v", err)
	}
	if b.orders("db")["paused"] != nil {
		t.Error("it is paused all the same")
	}
	if changed, err := b.c.Pause(t.Context(), "db", false, "you", ""); changed || err != nil {
		t.Errorf("resumed: %v %v", changed, err)
	}
	actor.del(paths("db").Control())
	pending(-time.Second) // nobody waits for it any more
	if changed, err := b.c.Pause(t.Context(), "db", true, "you", ""); !changed || err != nil {
		t.Errorf("paused later: %v %v", changed, err)
	}
}

// The primary of a replicated service is restarted where it is: it gives the lock back, and its copy is the first choice.
func TestARestartOfAPrimaryIsDoneWhenItIsPromotedAgain(t *testing.T) {
	for again, want := range map[string]string{"one": "", "two": "db runs on two now, not on one: one is unhealthy, it has lost data"} {
		b := newBed(t)
		one := b.session()
		one.activate("db", "one")
		one.put(paths("db").Copies()+"/one", election.CopyReport{}, zk.FlagEphemeral)
		done := make(chan error, 1)
		go func() { done <- b.c.Restart(t.Context(), "db", "me") }()
		b.ordered("db", "restart")
		if order := b.orders("db")["restart"].(map[string]any); order["node"] != "one" {
			t.Errorf("%v", order)
		}
		one.release("db")
		other := one
		if again != "one" {
			other = b.session()
			one.become("db", election.Member{Node: "one", Role: "standby", Health: "unhealthy", Why: "it has lost data"})
		}
		other.lock("db", again)
		other.crumb("db", again)
		one.del(paths("db").Control())
		if err := <-done; (err == nil) != (want == "") || err != nil && err.Error() != want {
			t.Errorf("%s: %v", again, err)
		}
	}
	b := newBed(t)
	one := b.session()
	one.activate("db", "one")
	one.put(paths("db").Copies()+"/one", election.CopyReport{}, zk.FlagEphemeral)
	if _, err := b.c.Pause(t.Context(), "db", true, "me", ""); err != nil {
		t.Fatal(err)
	}
	if err := b.c.Restart(t.Context(), "db", "me"); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "no copy of db would be promoted again") {
		t.Errorf("paused: %v", err)
	}
}
