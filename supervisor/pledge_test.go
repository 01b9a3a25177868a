package supervisor

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"understudy/election"
	"understudy/fencing/agent"
)

const aSession = 6 * time.Second

var asks = agent.Pledge{Service: "db", Token: 41, By: "a", Of: "b", For: election.PromiseLength(aSession)}

// A node promises when it sees no ensemble and does not start the service itself, and is bound from then on.
func TestPromiseIsGivenOnlyByWhoCanKeepIt(t *testing.T) {
	p := newPledges()
	p.acked(100*time.Second, aSession)
	if err := p.give(asks, 101*time.Second); err == nil || p.bound("db") != 0 {
		t.Error("promised though ZooKeeper was there a second ago")
	}
	p.engage("db")
	if err := p.give(asks, 110*time.Second); err == nil || p.bound("db") != 0 {
		t.Error("promised what may be started here")
	}
	p.disengage("db")
	if err := p.give(asks, 110*time.Second); err != nil || p.bound("db") != 116*time.Second {
		t.Errorf("bound until %v: %v", p.bound("db"), err)
	}
	shorter := asks
	shorter.For = time.Second
	if err := p.give(shorter, 111*time.Second); err != nil || p.bound("db") != 116*time.Second {
		t.Errorf("a shorter promise: bound until %v: %v", p.bound("db"), err)
	}
	if p.bound("web") != 0 {
		t.Error("bound for another service")
	}
}

// What the supervisor before this one has promised binds this one, in full, from when it began to listen; and who is not in
// the list was never asked: no delay is a proof for it.
func TestFormerPromisesBind(t *testing.T) {
	me := election.Peer{Node: "b", Machine: "m-b", Agent: "b:1"}
	v := &service{name: "db", node: election.Node{Node: "b", Machine: "m-b"}, agentAt: "b:1", pledges: newPledges()}
	plain := &election.BreadCrumb{SessionMs: aSession.Milliseconds()}
	listed := &election.BreadCrumb{SessionMs: aSession.Milliseconds(), Failsafe: &election.Failsafe{Members: []election.Peer{me}}}
	if _, err := v.binds(listed); !errors.Is(err, errUnlisted) {
		t.Errorf("nobody listens here yet, so another may be promising: %v", err)
	}
	v.pledges.listening(50 * time.Second)
	if until, err := v.binds(listed); err != nil || until != 56*time.Second {
		t.Errorf("bound until %v: %v", until, err)
	}
	if until, err := v.binds(plain); err != nil || until != 0 {
		t.Errorf("without failsafe: bound until %v: %v", until, err)
	}
	if err := v.pledges.give(asks, 60*time.Second); err != nil {
		t.Fatal(err)
	}
	for name, crumb := range map[string]*election.BreadCrumb{"failsafe": listed, "plain": plain} {
		if until, err := v.binds(crumb); err != nil || until != 66*time.Second {
			t.Errorf("%s: bound until %v: %v", name, until, err)
		}
	}
	for name, p := range map[string]election.Peer{
		"another node": {Node: "c", Machine: "m-b", Agent: "b:1"}, "another machine": {Node: "b", Machine: "m-c", Agent: "b:1"},
		"another address": {Node: "b", Machine: "m-b", Agent: "c:1"}, "no machine": {Node: "b", Agent: "b:1"},
	} {
		crumb := &election.BreadCrumb{SessionMs: aSession.Milliseconds(), Failsafe: &election.Failsafe{Members: []election.Peer{p}}}
		if _, err := v.binds(crumb); !errors.Is(err, errUnlisted) {
			t.Errorf("%s is taken for this one: %v", name, err)
		}
	}
}

// A promise is waited out, but for a confirmation.
func TestOwnPromiseIsSatOut(t *testing.T) {
	for name, confirm := range map[string]time.Duration{"to its end": 0, "confirmed": time.Second} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			v := &service{name: "db", log: hclog.NewNullLogger(), until: time.Hour + 5*time.Second, machine: clockOf(began)}
			confirmed, want := make(chan struct{}), 5*time.Second
			if confirm > 0 {
				want = confirm
				time.AfterFunc(confirm, func() { close(confirmed) })
			}
			if err := v.sitOut(t.Context(), confirmed); err != nil || time.Since(began) != want {
				t.Errorf("%s: waited %v: %v", name, time.Since(began), err)
			}
			over := errors.New("over")
			ctx, cancel := context.WithCancelCause(t.Context())
			cancel(over)
			v.until = 2 * time.Hour
			if err := v.sitOut(ctx, nil); !errors.Is(err, over) {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}

// clockOf is a machine that has nothing but a clock.
type aClock struct {
	Machine
	began time.Time
}

func clockOf(began time.Time) Machine { return aClock{began: began} }

func (c aClock) Now() time.Duration { return time.Hour + time.Since(c.began) }

// A member that has gone is counted on for a while, and one that came back as another one is that one at once.
func TestMemberThatHasGoneIsCountedOnForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, c, moved := election.Peer{Node: "b", Machine: "m", Agent: "b:1"}, election.Peer{Node: "c"}, election.Peer{Node: "b", Machine: "n", Agent: "b:2"}
		a := attendance{gone: map[election.Peer]time.Time{}}
		for _, step := range []struct {
			wait      time.Duration
			now, want []election.Peer
		}{
			{0, []election.Peer{c, b}, []election.Peer{b, c}},
			{0, []election.Peer{c}, []election.Peer{b, c}},
			{50 * time.Second, []election.Peer{c}, []election.Peer{b, c}},
			{0, []election.Peer{b, c}, []election.Peer{b, c}},
			{50 * time.Second, []election.Peer{c}, []election.Peer{b, c}}, // it counts from anew
			{50 * time.Second, []election.Peer{c}, []election.Peer{b, c}},
			{10 * time.Second, []election.Peer{c}, []election.Peer{c}},
			{0, []election.Peer{b, c}, []election.Peer{b, c}},
			{0, []election.Peer{moved, c}, []election.Peer{moved, c}},
		} {
			time.Sleep(step.wait)
			if got := a.count(step.now, time.Minute); !slices.Equal(got, step.want) {
				t.Errorf("of %v: counted on %v, want %v", step.now, got, step.want)
			}
		}
	})
}
