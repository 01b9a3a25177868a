package control

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"understudy/election"
	"understudy/supervisor/testbed/must"
)

// become changes what a node says of itself.
func (a *actor) become(service string, m election.Member) {
	a.Helper()
	a.says(service, m, began)
}

// says is become with since when that is so.
func (a *actor) says(service string, m election.Member, since time.Time) {
	a.Helper()
	m.Host, m.Since = m.Node+".example", since
	path := paths(service).Members() + "/" + m.Node
	if ok, _, err := a.conn.Exists(path); err != nil {
		a.Fatal(err)
	} else if !ok {
		a.put(path, m, zk.FlagEphemeral)
		return
	}
	must.OK(a, a.conn.Delete(path, -1))
	a.put(path, m, zk.FlagEphemeral)
}

// release gives lock and breadcrumb back, as the end of a term does.
func (a *actor) release(service string) {
	a.Helper()
	a.del(paths(service).Crumb())
	a.del(paths(service).Lock())
}

// token is that of the lock.
func (b *bed) token(service string) int64 {
	b.Helper()
	n, err := b.c.read(b.Context(), paths(service).Lock())
	must.OK(b, err)
	return n.stat.Czxid
}

// ordered waits until a switchover is ordered.
func (b *bed) ordered(service, order string) {
	b.Helper()
	for began := time.Now(); b.orders(service)[order] == nil; {
		if time.Since(began) > 20*time.Second {
			b.Fatal("no order")
		}
	}
}

// switches orders a switchover to two, while follow plays what comes of it; told waits until a step is told, and tells whether it was.
func (b *bed) switches(limit time.Duration, h SwitchoverRequest, follow func(told func(step string) bool)) (to string, err error) {
	ctx, cancel := context.WithTimeout(b.Context(), limit)
	defer cancel()
	steps, over := make(chan string, 100), make(chan struct{})
	h.Service, h.By = "db", "me"
	h.Tell = func(step string) { steps <- step }
	var wg sync.WaitGroup
	wg.Go(func() {
		b.ordered("db", "switchover")
		follow(func(step string) bool {
			for {
				select {
				case s := <-steps:
					if s == step {
						return true
					}
				case <-over:
					b.Errorf("not told before the end: %q", step)
					return false
				}
			}
		})
	})
	to, err = b.c.Switchover(ctx, h)
	close(over)
	wg.Wait()
	return to, err
}

func pair(t *testing.T) (b *bed, one, two *actor) {
	b = newBed(t)
	one, two = b.session(), b.session()
	one.activate("db", "one")
	two.member("db", "two", "standby", "")
	return b, one, two
}

// Done is only what runs: not what is active and fails, nor what a node has said of a previous activation.
func TestASwitchoverIsDoneWhenItRunsThere(t *testing.T) {
	b, one, two := pair(t)
	to, err := b.switches(20*time.Second, SwitchoverRequest{To: "two"}, func(told func(string) bool) {
		one.release("db")
		one.become("db", election.Member{Node: "one", Role: "standby", Health: "ok"})
		two.become("db", election.Member{Node: "two", Role: "active", Health: "ok", Token: 1})
		two.lock("db", "two")
		two.crumb("db", "two")
		told("two has taken it, and is starting it")
		two.become("db", election.Member{Node: "two", Role: "active", Health: "failing", Why: "it cannot be started", Token: b.token("db")})
		told("two has taken it, and it is failing, it cannot be started")
		two.become("db", election.Member{Node: "two", Role: "active", Health: "ok", Token: b.token("db")})
	})
	if to != "two" || err != nil {
		t.Errorf("%q, %v", to, err)
	}
}

func TestASwitchoverThatRunsOutOfTimeSaysHowThingsStand(t *testing.T) {
	b, one, two := pair(t)
	_, err := b.switches(2*time.Second, SwitchoverRequest{To: "two"}, func(func(string) bool) {
		one.release("db")
		one.become("db", election.Member{Node: "one", Role: "standby", Health: "ok"})
		two.lock("db", "two")
		two.crumb("db", "two")
		two.become("db", election.Member{Node: "two", Role: "active", Health: "failing", Why: "no such file", Token: b.token("db")})
	})
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "two has taken it, and it is failing, no such file") {
		t.Error(err)
	}
}

func TestASwitchoverThatComesBackSaysWhy(t *testing.T) {
	b, one, two := pair(t)
	_, err := b.switches(20*time.Second, SwitchoverRequest{To: "two"}, func(told func(string) bool) {
		one.release("db")
		one.become("db", election.Member{Node: "one", Role: "standby", Health: "ok"})
		two.lock("db", "two")
		two.crumb("db", "two")
		two.become("db", election.Member{Node: "two", Role: "active", Health: "failing", Why: "no such file", Token: b.token("db")})
		told("two has taken it, and it is failing, no such file")
		two.become("db", election.Member{Node: "two", Role: "failed", Health: "failed", Why: "no such file"})
		two.release("db")
		one.lock("db", "one")
		one.crumb("db", "one")
		one.become("db", election.Member{Node: "one", Role: "active", Health: "ok", Token: b.token("db")})
	})
	if err == nil || !strings.Contains(err.Error(), "db is active again on one: two had taken it, and failed, no such file") {
		t.Errorf("%v", err)
	}
}

// A node that rests takes a service that nobody has when an operator forces it to; without force it is said why nobody has it.
func TestAServiceThatNobodyCanHaveIsForcedUponANode(t *testing.T) {
	b := newBed(t)
	two := b.session()
	two.claim("db")
	two.member("db", "two", "failed", "the program ended: exit code 1")
	if err := b.c.Restart(t.Context(), "db", "me"); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "no node is active") {
		t.Errorf("restart: %v", err)
	}
	for _, to := range []string{"", "two"} {
		if _, err := b.c.Ready(t.Context(), SwitchoverRequest{Service: "db", To: to}); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "two is failed, the program ended: exit code 1") {
			t.Errorf("to %q: %v", to, err)
		}
	}
	to, err := b.switches(20*time.Second, SwitchoverRequest{To: "two", Force: true}, func(func(string) bool) {
		two.lock("db", "two")
		two.crumb("db", "two")
		two.become("db", election.Member{Node: "two", Role: "active", Health: "ok", Token: b.token("db")})
	})
	if to != "two" || err != nil {
		t.Errorf("%q, %v", to, err)
	}
}

// A forced switchover to a node that cannot take the service ends once the node says so, and not before.
func TestAForcedSwitchoverEndsWithTheNodesReason(t *testing.T) {
	failed := election.Member{Node: "two", Role: "failed", Health: "failed", Why: "the program ended: exit code 1"}
	for want, after := range map[string]election.Member{
		"two cannot take db: it failed, the previous node's program may be alive: exec failed (see `understudy status db`)": {Node: "two", Role: "failed", Health: "failed", Why: "the previous node's program may be alive: exec failed"},
		"two cannot take db: it is unfit, it could not start here: no such file (see `understudy status db`)":               {Node: "two", Role: "standby", Health: "unfit", Why: "it could not start here: no such file"},
		"two is to take db: context deadline exceeded":                                                                      failed, // it has not heard of it yet
	} {
		b := newBed(t)
		two := b.session()
		two.claim("db")
		two.become("db", failed)
		limit := 20 * time.Second
		if after == failed {
			limit = arriving + time.Second
		}
		_, err := b.switches(limit, SwitchoverRequest{To: "two", Force: true}, func(func(string) bool) {
			if after != failed {
				two.says("db", after, time.Now())
			}
		})
		if err == nil || err.Error() != want {
			t.Errorf("%v; want %s", err, want)
		}
	}
}

// Whoever stops a service ends the switchovers of it that others wait for.
func TestASwitchoverEndsWithAStop(t *testing.T) {
	b, one, _ := pair(t)
	_, err := b.switches(20*time.Second, SwitchoverRequest{To: "two"}, func(func(string) bool) {
		if changed, err := b.c.Stop(t.Context(), "db", true, "bob", "too old"); !changed || err != nil {
			t.Error(changed, err)
		}
		one.release("db")
	})
	if err == nil || err.Error() != "db was meanwhile stopped by bob: too old" {
		t.Error(err)
	}
}

// A copy is promoted by force whatever others have, and the operator reads what that is.
func TestACopyIsForcedThoughOthersHaveMoreData(t *testing.T) {
	b := newBed(t)
	two := b.session()
	two.claim("db")
	two.member("db", "two", "standby", "the copy on one may have newer data than that on two")
	one := b.session()
	one.member("db", "one", "standby", "")
	folder, position, greater := paths("db").Copies(), uint64(90), uint64(95)
	two.put(folder, election.Promotion{Token: 7}, 0)
	two.put(folder+"/one", election.CopyReport{Node: "one", Followed: 7, Position: &position}, 0)
	two.put(folder+"/three", election.CopyReport{Node: "three", Followed: 7, Had: 92, Why: "it has lost data: its position is 1, and was 92"}, 0)
	two.put(folder+"/four", election.CopyReport{Node: "four", Followed: 7, Had: 93, Same: true}, 0)
	one.member("db", "three", "standby", "")
	one.member("db", "four", "standby", "")
	two.put(folder+"/two", election.CopyReport{Node: "two", Followed: 7, Toward: 8, Position: &greater}, 0)
	if _, err := b.c.Ready(t.Context(), SwitchoverRequest{Service: "db", To: "two"}); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "two is standby, the copy on one may have newer data than that on two (--to NODE --force promotes NODE whatever data it has)") {
		t.Errorf("%v", err)
	}
	to, err := b.switches(20*time.Second, SwitchoverRequest{To: "two", Force: true}, func(told func(string) bool) {
		told("two is promoted whatever data it has, and what only others have is lost: four had position 93 of promotion 7, and has lost nothing; one has position 90 of promotion 7; three has not reported its position, which was 92 of promotion 7 (it has lost data: its position is 1, and was 92); two has position 95, and may lack data of promotion 8")
		two.lock("db", "two")
		two.crumb("db", "two")
		two.become("db", election.Member{Node: "two", Role: "active", Health: "ok", Token: b.token("db")})
	})
	if to != "two" || err != nil {
		t.Errorf("%q, %v", to, err)
	}
	said := ""
	_, err = b.c.Ready(t.Context(), SwitchoverRequest{Service: "db", To: "one", Force: true, Tell: func(step string) { said = step }})
	if want := "one is promoted whatever data it has: writes of two that it lacks are lost"; said != want || err != nil {
		t.Errorf("%q, %v", said, err)
	}
}

// A copy that acknowledges no writes may lack some: only force promotes it.
func TestASwitchoverStaysInTheLiveSet(t *testing.T) {
	b, one, two := pair(t)
	position := uint64(90)
	folder := paths("db").Copies()
	one.put(folder, election.Promotion{Token: b.token("db"), Live: []string{"one", "three"}}, 0)
	two.put(folder+"/two", election.CopyReport{Node: "two", Role: "follower", Position: &position}, 0)
	_, err := b.c.Ready(t.Context(), SwitchoverRequest{Service: "db", To: "two"})
	if want := "two is not in the live set (one, three), so its copy may lack acknowledged writes (--force orders it anyway, whatever data it has)"; !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), want) {
		t.Errorf("%v", err)
	}
	if _, err := b.c.Ready(t.Context(), SwitchoverRequest{Service: "db", To: "two", Force: true, Tell: func(string) {}}); err != nil {
		t.Error(err)
	}
	words := ""
	for _, c := range b.status("db").Services[0].Copies {
		words += c.Node + ": " + c.Words + "\n"
	}
	if strings.Count(words, "not in the live set") != 1 || !strings.Contains(words, "two: follower, has followed no promotion, not in the live set") {
		t.Error(words)
	}
	one.release("db")
	said := ""
	_, err = b.c.Ready(t.Context(), SwitchoverRequest{Service: "db", To: "two", Force: true, Tell: func(step string) { said = step }})
	if want := "two is promoted whatever data it has, and is not in the live set (one, three), and what only others have is lost: "; err != nil || !strings.HasPrefix(said, want) {
		t.Errorf("%q, %v", said, err)
	}
}

// Neither force nor patience helps with a node that never takes a service.
func TestANodeThatNeverTakesAServiceIsToldAsThat(t *testing.T) {
	b := newBed(t)
	two := b.session()
	two.claim("db")
	two.become("db", election.Member{Node: "two", Role: "standby", Health: "unfit", Why: election.NotEligible, Never: true})
	_, err := b.c.Ready(t.Context(), SwitchoverRequest{Service: "db", To: "two"})
	if err == nil || err.Error() != "refused: two never takes it: eligible: false in its config" {
		t.Error(err)
	}
}

func TestWhoWantsAServiceBackReadsThatItIsAboutToMove(t *testing.T) {
	b, _, _ := pair(t)
	_, _ = b.switches(2*time.Second, SwitchoverRequest{To: "two"}, func(func(string) bool) {
		_, err := b.c.Ready(t.Context(), SwitchoverRequest{Service: "db", To: "one"})
		if err == nil || err.Error() != "refused: one is active still, and a switchover to two is under way" {
			t.Error(err)
		}
	})
}
