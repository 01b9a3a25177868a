package control

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"understudy/election"
	"understudy/supervisor/testbed/must"
	"understudy/supervisor/testbed/zktest"
)

func (b *bed) confirm(service, node string) Confirmation {
	b.Helper()
	got, err := b.c.Confirm(b.Context(), service, node, Confirming{By: "me@op", EffectsGone: true})
	must.OK(b, err)
	return got
}

func TestAConfirmedBreadcrumbIsGoneAndNothingElseIs(t *testing.T) {
	for _, held := range []string{"by nobody", "by the one that fences", "by the same node in another session"} {
		t.Run("lock held "+held, func(t *testing.T) {
			b := newBed(t)
			old, fresh := b.session(), b.session()
			old.crumb("db", "old")
			switch held {
			case "by the one that fences":
				fresh.lock("db", "new")
			case "by the same node in another session":
				fresh.lock("db", "old")
			}
			lock := b.has(paths("db").Lock())
			if got := b.confirm("db", "old"); !got.Done {
				t.Errorf("not done: %s", got.Why)
			}
			if b.has(paths("db").Crumb()) {
				t.Error("the breadcrumb is still there")
			}
			if b.has(paths("db").Lock()) != lock {
				t.Error("the lock was touched")
			}
			left, _ := b.c.children(t.Context(), paths("db").Dir())
			for _, name := range left {
				if strings.HasPrefix(name, "confirm-") {
					t.Errorf("%s is left behind", name)
				}
			}
		})
	}
}

// Any znode of the session shows that it stands, as for who fences.
func TestAChildWhoseSessionHoldsAnythingIsNotConfirmed(t *testing.T) {
	for name, c := range map[string]struct {
		hold func(one *actor)
		want string
	}{
		"the lock": {func(one *actor) { one.lock("db", "one") }, "Stop its supervisor instead"},
		"its node": {func(one *actor) {
			one.put(election.NodesDir(root)+"/one", election.Node{Node: "one"}, zk.FlagEphemeral)
		}, "is registered"},
		"its membership": {func(one *actor) { one.member("db", "one", "active", "") }, paths("db").Members() + "/one is still there then, delete that znode by hand"},
	} {
		b := newBed(t)
		one := b.session()
		one.crumb("db", "one")
		c.hold(one)
		if _, err := b.c.Confirm(t.Context(), "db", "one", Confirming{By: "me@op"}); !errors.Is(err, ErrActive) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
		if !b.has(paths("db").Crumb()) {
			t.Errorf("%s: the breadcrumb is gone", name)
		}
	}
}

func TestConfirmingAgainIsNoError(t *testing.T) {
	b := newBed(t)
	old, fresh := b.session(), b.session()
	old.crumb("db", "old")
	old.put(paths("db").History()+"/n_", election.Activation{Node: "old"}, zk.FlagSequence)
	b.confirm("db", "old")
	if got := b.confirm("db", "old"); got.Done || !strings.Contains(got.Why, "no fencing of old is pending") {
		t.Errorf("got %+v", got)
	}
	fresh.activate("db", "new")
	if got := b.confirm("db", "old"); got.Done || !strings.Contains(got.Why, "new is active") {
		t.Errorf("got %+v", got)
	}
	if !b.has(paths("db").Crumb()) {
		t.Error("the breadcrumb of another node is gone")
	}
}

func TestUnknownNamesAreErrorsThatTellWhatThereIs(t *testing.T) {
	b := newBed(t)
	b.session().activate("db", "one")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if _, err := b.c.Confirm(ctx, "db", "two", Confirming{By: "me@op"}); err == nil || err.Error() != `no node "two"; there is: one` {
		t.Errorf("got %v", err)
	}
	_, status := b.c.Status(ctx, "bd")
	_, history := b.c.History(ctx, "bd")
	_, confirm := b.c.Confirm(ctx, "bd", "one", Confirming{By: "me@op"})
	_, pause := b.c.Pause(ctx, "bd", true, "me", "")
	_, switchover := b.c.Switchover(ctx, SwitchoverRequest{Service: "bd"})
	many := UnknownError{"service", "x", strings.Split("abcdefghijkl", "")}
	if got, want := many.Error(), `no service "x"; there is: a, b, c, d, e, f, g, h, i, j, 2 more`; got != want {
		t.Errorf("of many: %s", got)
	}
	for what, err := range map[string]error{
		"status": status, "history": history, "confirm": confirm, "pause": pause, "switchover": switchover,
		"restart": b.c.Restart(ctx, "bd", "me"), "reload": b.c.Reload(ctx, "bd", "me"),
	} {
		if !errors.Is(err, ErrUnknown) || err.Error() != `no service "bd"; there is: db` {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestABreadcrumbThatNobodyUnderstandsIsNotConfirmed(t *testing.T) {
	b := newBed(t)
	b.session().put(paths("db").Crumb(), []byte("{"), 0)
	if _, err := b.c.Confirm(t.Context(), "db", "one", Confirming{By: "me@op"}); err == nil || !strings.Contains(err.Error(), paths("db").Crumb()) {
		t.Errorf("got %v", err)
	}
}

// races are what may happen between the reading of a breadcrumb and its deletion.
var races = []struct {
	name   string
	happen func(old, fresh *actor)
}{
	{"the breadcrumb is written anew, with the version that the old one had", func(old, fresh *actor) {
		old.del(paths("db").Crumb())
		fresh.claim("db")
		fresh.crumb("db", "new")
	}},
	{"the breadcrumb is taken over in place", func(_, fresh *actor) {
		if _, err := fresh.conn.Set(paths("db").Crumb(), []byte(`{"node":"new"}`), 0); err != nil {
			fresh.Fatal(err)
		}
	}},
	{"the named node becomes active again", func(old, _ *actor) { old.lock("db", "old") }},
	{"the breadcrumb goes", func(old, _ *actor) { old.del(paths("db").Crumb()) }},
}

func TestWhatChangedMeanwhileIsNotTouched(t *testing.T) {
	for _, race := range races {
		t.Run(race.name, func(t *testing.T) { raceOn(newBed(t), race.happen) })
	}
}

func TestWhatChangedMeanwhileIsNotTouchedOnARealServer(t *testing.T) {
	zktest.Need(t)
	e := zktest.Start(t, zktest.Config{TickTime: 500 * time.Millisecond})
	b := bedOn(t, e.ClientAddrs()[0])
	for _, race := range races {
		t.Run(race.name, func(t *testing.T) { raceOn(&bed{t, b.addr, b.c}, race.happen) })
	}
	b.session().crumb("db", "old")
	if got := b.confirm("db", "old"); !got.Done {
		t.Errorf("not done: %s", got.Why)
	}
}

func raceOn(b *bed, happen func(old, fresh *actor)) {
	old, fresh := b.session(), b.session()
	old.crumb("db", "old")
	o := confirming{b.c.znodes, paths("db"), "old", Confirming{}}
	facts, err := o.inspect(b.Context())
	must.OK(b, err)
	happen(old, fresh)
	before, err := b.c.read(b.Context(), paths("db").Crumb())
	must.OK(b, err)
	if err := o.erase(b.Context(), facts); !errors.Is(err, errChanged) {
		b.Errorf("erase: %v", err)
	}
	after, err := b.c.read(b.Context(), paths("db").Crumb())
	if err != nil || after.exists != before.exists || after.stat != before.stat {
		b.Errorf("the breadcrumb was %+v and is %+v, %v", before, after, err)
	}
	for _, path := range []string{paths("db").Crumb(), paths("db").Lock()} {
		if b.has(path) {
			old.del(path)
		}
	}
}

// A lock may outlive its holder: whoever knows that the host is off is not sent to stop what runs there, but told what happens next.
func TestWhoeverIsRefusedIsToldWhatHappensToTheLock(t *testing.T) {
	b := newBed(t)
	one := b.session()
	one.claim("db")
	one.lock("db", "one")
	one.put(paths("db").Crumb(), election.BreadCrumb{Node: "one", Session: one.id(), LeaseMs: 4000}, 0)
	for _, want := range []string{"no heartbeat", "last heartbeat at "} {
		_, err := b.c.Confirm(t.Context(), "db", "one", Confirming{By: "me@op"})
		if !errors.Is(err, ErrActive) {
			t.Fatalf("got %v", err)
		}
		for _, want := range []string{want, "one holds the lock of db (", "Stop its supervisor", "is off, repeat this in 8s, ", "understudy status"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("no %q in: %v", want, err)
			}
		}
		if strings.Contains(err.Error(), "it is active") {
			t.Errorf("nobody knows that: %v", err)
		}
		if want == "no heartbeat" {
			one.put(election.NodesDir(root)+"/one", election.Node{Node: "one"}, zk.FlagEphemeral)
		}
	}
}

// What its own supervisor sees alive, and waits for, nobody can swear to be dead; on another machine of that name it can see nothing.
func TestWhatItsSupervisorSeesAliveIsNotConfirmed(t *testing.T) {
	for name, confirmed := range map[string]bool{"m1": false, "m2": true, "m1 without the service": true, "m1 in a backup": true} {
		b := newBed(t)
		machine, _, _ := strings.Cut(name, " ")
		flags, wants := int32(zk.FlagEphemeral), []string{"pid 7 (postgres), state D (disk sleep)"}
		old, fresh := b.session(), b.session()
		record := election.BreadCrumb{Node: "one", Machine: "m1", Boot: "b", Session: old.id()}
		record.Leftover = election.Leftover{Known: true, Pid: 7, Program: "postgres", State: "D (disk sleep)", By: "one"}
		old.put(paths("db").Crumb(), record, 0)
		switch name {
		case "m1 in a backup": // its supervisor is off
			flags = 0
			fresh.put(paths("db").Members()+"/one", election.Member{Node: "one"}, 0)
		case "m1 without the service":
			fresh.put(paths("db").Members()+"/one", election.Member{Node: "one"}, 0)
		default:
			fresh.member("db", "one", "standby", "")
		}
		if flags != 0 {
			wants = append(wants, "connected")
		}
		fresh.put(election.NodesDir(root)+"/one", election.Node{Node: "one", Host: "h", Machine: machine}, flags)
		got, err := b.c.Confirm(t.Context(), "db", "one", Confirming{By: "me@op", EffectsGone: true})
		if done := err == nil && got.Done; done != confirmed || b.has(paths("db").Crumb()) == confirmed {
			t.Errorf("on %s: %+v, %v", name, got, err)
		}
		told := strings.Join(got.Notes, "; ")
		if err != nil {
			told = err.Error()
		}
		if flags == 0 && strings.Contains(told, "connected") {
			t.Errorf("on %s: %s", name, told)
		}
		for _, want := range wants {
			if !strings.Contains(told, want) {
				t.Errorf("on %s, no %q in: %s", name, want, told)
			}
		}
	}
}

// What makes a confirmation doubtful, and what keeps others from starting, is said with it.
func TestAConfirmationPromisesNothingThatIsNotSo(t *testing.T) {
	for name, c := range map[string]struct {
		record election.BreadCrumb
		stage  func(fresh *actor)
		want   string
	}{
		"nothing":        {},
		"what survives":  {record: election.BreadCrumb{Effects: election.Effects{Survive: []string{"role"}}}, want: "a boot of its host does not undo"},
		"it is failsafe": {record: election.BreadCrumb{Failsafe: &election.Failsafe{Members: []election.Peer{{Node: "two"}}}}, want: "without ZooKeeper"},
		"its node is back": {stage: func(fresh *actor) {
			fresh.put(election.NodesDir(root)+"/one", election.Node{Node: "one"}, zk.FlagEphemeral)
		}, want: "connected"},
		"another stale lock": {stage: func(fresh *actor) { fresh.lock("db", "two") }, want: "no supervisor is connected in that session"},
		"who fences": {stage: func(fresh *actor) {
			fresh.lock("db", "two")
			fresh.put(election.NodesDir(root)+"/two", election.Node{Node: "two"}, zk.FlagEphemeral)
		}},
		"a pause": {stage: func(fresh *actor) { fresh.put(paths("db").Control(), election.Control{Paused: true}, 0) }, want: "paused"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t)
			old, fresh := b.session(), b.session()
			c.record.Node, c.record.Session = "one", old.id()
			old.put(paths("db").Crumb(), c.record, 0)
			if c.stage != nil {
				c.stage(fresh)
			}
			got := b.confirm("db", "one")
			if told := strings.Join(got.Notes, "; "); !got.Done || !strings.Contains(told, c.want) || c.want == "" && told != "" {
				t.Errorf("%+v", got)
			}
		})
	}
}

// A restored backup leaves the znode of a node to no session: nobody is connected, whatever the breadcrumb says.
func TestAZnodeOfNoSessionIsNoSupervisor(t *testing.T) {
	b := newBed(t)
	one := b.session()
	one.put(paths("db").Crumb(), election.BreadCrumb{Node: "one"}, 0)
	one.put(election.NodesDir(root)+"/one", election.Node{Node: "one"}, 0)
	if got := b.confirm("db", "one"); !got.Done || len(got.Notes) > 0 {
		t.Errorf("%+v", got)
	}
}

// The node's agent is asked before anybody's word counts: what it sees alive is not confirmed dead, unless that is forced.
func TestAnAgentThatSeesTheProgramAliveIsBelieved(t *testing.T) {
	for name, c := range map[string]struct {
		alive, force bool
		err          error
		done, asked  bool
	}{
		"alive":             {alive: true, err: errors.New("pid 7 is alive"), asked: true},
		"alive, and forced": {alive: true, err: errors.New("pid 7 is alive"), force: true, done: true},
		"dead":              {done: true, asked: true},
		"no answer":         {err: errors.New("connection refused"), done: true, asked: true},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t)
			old := b.session()
			old.claim("db")
			old.put(paths("db").Crumb(), election.BreadCrumb{Node: "old", Session: "0x1", Agent: "h:8438", Token: 7}, 0)
			asked := int64(0)
			got, err := b.c.Confirm(t.Context(), "db", "old", Confirming{By: "me@op", Force: c.force, Ask: func(_ context.Context, crumb election.BreadCrumb, token int64) (bool, error) {
				if asked = token; crumb.Agent != "h:8438" {
					t.Errorf("asked %+v", crumb)
				}
				return c.alive, c.err
			}})
			if got.Done != c.done || (err == nil) != c.done || b.has(paths("db").Crumb()) == c.done || (asked == 7) != c.asked {
				t.Errorf("%+v, %v, asked about %d; the breadcrumb is there: %v", got, err, asked, b.has(paths("db").Crumb()))
			}
			if !c.done && !strings.Contains(err.Error(), "pid 7 is alive. Nothing is done; --force") {
				t.Errorf("the refusal: %v", err)
			}
			orders, _ := b.c.read(t.Context(), paths("db").Control())
			if said := election.ParseControl(orders.data).Confirmed; (said != nil) != c.done || said != nil && (said.By != "me@op" || said.Token != 7 || said.Node != "old") {
				t.Errorf("who has confirmed: %+v", said)
			}
		})
	}
}
