package supervisor

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"understudy/election"
	"understudy/fencing/agent"
)

const aSession = 6 * time.Second

// P1: a promise binds from when it is heard, so it is counted on from when the question was sent, however late the answer comes.
func TestPromiseIsCountedFromTheQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const late = aSession / 10
		keys := agent.Shared([]byte("known to both of them"))
		server := &agent.Server{
			Keys: keys, Logger: hclog.NewNullLogger(), Self: agent.Answer{Node: "b", Machine: "m"},
			Promise: func(agent.Pledge) error { time.Sleep(late); return nil },
		}
		dial := func(context.Context, string) (net.Conn, error) {
			ours, theirs := net.Pipe()
			go server.Answer(t.Context(), theirs)
			return ours, nil
		}
		began := time.Now()
		s := &supervisor{cfg: Config{Machine: clockOf(began), Agent: &Agent{Keys: keys, Dial: dial}}, self: election.Node{Node: "a"}}
		h := &hold{sup: s}
		until, err := h.askOne(t.Context(), "db", 41, election.Peer{Node: "b", Machine: "m", Agent: "b:1"}, aSession)
		if err != nil || time.Since(began) < late {
			t.Fatalf("answered after %v: %v", time.Since(began), err)
		}
		if want := time.Hour + election.CoverLength(aSession); until != want {
			t.Errorf("counted on until %v, want %v", until, want)
		}
		if _, err := h.askOne(t.Context(), "db", 41, election.Peer{Node: "b", Machine: "m"}, aSession); err == nil {
			t.Error("promised by somebody without an agent")
		}
	})
}

// P3: the guardians know one deadline for all. While it is further than ZooKeeper's own, by promises about what runs already,
// nothing else may be started under it.
func TestNothingIsStartedUnderThePromisesForAnother(t *testing.T) {
	h := (&supervisor{}).newHold(&election.Session{}, 1)
	h.told = time.Second
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	v := &service{name: "db"}
	if h.enter(ctx, v, &election.Claim{}) || len(h.runs) > 0 {
		t.Error("it may be started")
	}
	h.told = 0
	if !h.enter(ctx, v, &election.Claim{}) || len(h.runs) != 1 {
		t.Error("it may not be started under ZooKeeper's own deadline")
	}
}

// P1: the child of a term that is about to go on here runs, before its claim is known here: nothing is promised about it, so no
// deadline goes beyond ZooKeeper's own, whatever is promised about others.
func TestATermThatIsAboutToGoOnIsCoveredByNoPromise(t *testing.T) {
	carried, other := &service{name: "db", carried: &carriedTerm{}}, &service{name: "web"}
	h := (&supervisor{services: []*service{carried, other}}).newHold(&election.Session{}, 1)
	h.expect()
	c, ok := h.runs[carried]
	if !ok || len(h.runs) != 1 {
		t.Fatalf("counted: %v", h.runs)
	}
	if until := c.until(time.Hour); until != 0 {
		t.Errorf("covered until %v", until)
	}
}
