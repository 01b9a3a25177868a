package control

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"understudy/election"
	"understudy/supervisor/testbed/must"
)

// replicatedBed has a service whose primary is on one, beside a follower on two, and a node three that was there.
func replicatedBed(t *testing.T) (b *bed, one, two *actor) {
	b = newBed(t)
	one, two = b.session(), b.session()
	one.activate("db", "one")
	two.member("db", "two", "standby", "")
	for _, a := range []struct {
		*actor
		node string
	}{{one, "one"}, {two, "two"}} {
		a.put(paths("db").Copies()+"/"+a.node, election.CopyReport{Role: CopyFollower}, zk.FlagEphemeral)
		a.put(paths("db").Known()+"/"+a.node, []byte{}, 0)
	}
	one.put(paths("db").Known()+"/three", []byte{}, 0)
	return b, one, two
}

// answers takes the order for a copy away, or says why it failed.
func (a *actor) answers(failed string) (got election.CopyOrder) {
	a.Helper()
	a.ordered("db", "copy")
	text, stat, err := a.conn.Get(paths("db").Control())
	must.OK(a, err)
	all := election.ParseControl(text)
	if got = *all.Copy; failed != "" {
		all.Copy.Failed = failed
	} else {
		all.Copy = nil
	}
	if _, err := a.conn.Set(paths("db").Control(), all.Merge(text), stat.Version); err != nil {
		a.Fatal(err)
	}
	return got
}

func TestAnOrderForACopyIsDoneWhenItsNodeHasAnswered(t *testing.T) {
	b, _, two := replicatedBed(t)
	order := func(ctx context.Context, do, node string) error {
		return b.c.OrderCopy(ctx, CopyRequest{Service: "db", Node: node, Do: do, By: "me"})
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for failed, want := range map[string]string{"": "", "exit code 1": "reclone of the copy of db on two: exit code 1"} {
		done := make(chan error, 1)
		go func() { done <- order(ctx, "reclone", "two") }()
		got := two.answers(failed)
		if deadline, _ := ctx.Deadline(); got.Node != "two" || got.Do != "reclone" || got.Token != b.token("db") || got.By != "me" || !got.Deadline.Equal(deadline) {
			t.Errorf("%+v", got)
		}
		if err := <-done; (err == nil) != (want == "") || err != nil && (err.Error() != want || !errors.Is(err, ErrFailed)) {
			t.Errorf("%q: %v", failed, err)
		}
		if left := b.orders("db")["copy"]; left != nil {
			t.Errorf("%q: it is left: %v", failed, left)
		}
	}
	brief, enough := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer enough()
	if err := order(brief, "reclone", "two"); !errors.Is(err, context.DeadlineExceeded) || !strings.HasPrefix(err.Error(), "two has not done it yet, its copy is follower") ||
		!strings.Contains(err.Error(), "(a clone that has begun continues)") || b.orders("db")["copy"] != nil {
		t.Errorf("%v, %v", err, b.orders("db"))
	}
}

// The primary's orders are those that it has without a node. What cannot be done is refused at once.
func TestAnOrderForACopyIsRefusedAtOnce(t *testing.T) {
	b, one, two := replicatedBed(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	two.activate("web", "two")
	refuses := func(service, do, node, want string) {
		t.Helper()
		err := b.c.OrderCopy(ctx, CopyRequest{Service: service, Node: node, Do: do, By: "me"})
		if err == nil || !errors.Is(err, ErrRefused) && !errors.Is(err, ErrUnknown) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s of %s on %s: %v, want %q", do, service, node, err, want)
		}
	}
	one.activate("warm", "one")
	two.put(paths("warm").Members()+"/two", election.Member{Node: "two", Role: election.RoleStandby, Warm: true}, zk.FlagEphemeral)
	one.put(election.DrainedDir(root), []byte{}, 0)
	one.put(election.DrainedDir(root)+"/two", election.Drained{By: "ann"}.Encode(), 0)
	refuses("warm", "restart", "two", "so its program does not stand by: `understudy undrain two` first")
	refuses("db", "reclone", "one", "one is the primary, whose data the other copies get")
	refuses("db", "restart", "four", `no node "four"; there is: one, three, two`)
	refuses("db", "restart", "three", "three is not connected to ZooKeeper, and would not see the order")
	said := func(a *actor, node string, about election.CopyReport) {
		t.Helper()
		a.del(paths("db").Copies() + "/" + node)
		a.put(paths("db").Copies()+"/"+node, about, zk.FlagEphemeral)
	}
	well := election.CopyReport{Role: CopyFollower, Followed: b.token("db")}
	said(two, "two", well)
	const alone = "only the copy on two has the data of the primary on one: until it is cloned, a loss of one loses all of it"
	refuses("db", "reclone", "two", alone)
	one.put(paths("db").Copies()+"/three", election.CopyReport{Role: CopyFollower, Followed: b.token("db"), Toward: b.token("db")}, zk.FlagEphemeral)
	said(one, "one", election.CopyReport{Role: CopyPrimary, Promoted: b.token("db")})
	refuses("db", "reclone", "two", alone)
	said(one, "three", well)
	goes := func(r CopyRequest) {
		t.Helper()
		done := make(chan error, 1)
		go func() { done <- b.c.OrderCopy(ctx, r) }()
		two.answers("")
		if err := <-done; err != nil {
			t.Errorf("%+v: %v", r, err)
		}
	}
	goes(CopyRequest{Service: "db", Node: "two", Do: "reclone"})
	one.del(paths("db").Copies() + "/three")
	goes(CopyRequest{Service: "db", Node: "two", Do: "reclone", Force: true})
	well.Why = "it has no position"
	said(two, "two", well)
	goes(CopyRequest{Service: "db", Node: "two", Do: "reclone"})
	refuses("web", "restart", "one", "web is neither replicated nor warm: it runs on its active node only")
	for _, do := range []string{"restart", "reload"} {
		done := make(chan error, 1)
		go func() { done <- b.c.OrderCopy(ctx, CopyRequest{Service: "db", Node: "one", Do: do, By: "me"}) }()
		b.ordered("db", do)
		one.del(paths("db").Control())
		if err := <-done; err != nil {
			t.Errorf("%s of the primary: %v", do, err)
		}
	}
	pending := election.Control{Copy: &election.CopyOrder{Order: election.Order{ID: "x", Node: "three", By: "ann"}, Do: "reclone", Deadline: time.Now().Add(time.Hour)}}
	text, err := json.Marshal(pending)
	must.OK(t, err)
	one.put(paths("db").Control(), text, 0)
	refuses("db", "restart", "two", "ann has ordered a reclone of the copy on three, which is waited for")
	one.release("db")
	one.del(paths("db").Control())
	refuses("db", "reclone", "two", "no copy of db is promoted from which that on two could be cloned")
}
