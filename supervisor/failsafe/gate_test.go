package failsafe

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

// named is a term of which nothing is known but its service.
type named string

func (n named) Name() string                { return string(n) }
func (named) End(error)                     {}
func (named) Killer() func(context.Context) { return nil }

// deadlines are guardians that remember the last deadline that they were told.
type deadlines struct{ last time.Duration }

func (d *deadlines) Extend(end time.Duration) error { d.last = end; return nil }

// ended is the gate of a session whose lease ends at 0, an hour ago.
func ended(guardians guardians) *Gate {
	return NewGate(Config{Session: &election.Session{}, Guardians: guardians, Now: func() time.Duration { return time.Hour }, Log: hclog.NewNullLogger()})
}

// P1: a promise binds from when the question is heard, so it counts from when the question was sent, however late the answer comes.
func TestPromiseIsCountedFromTheQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const late = aLease / 10
		keys := agent.Shared([]byte("known to both of them"))
		server := &agent.Server{
			Keys: keys, Logger: hclog.NewNullLogger(), Self: agent.Answer{Node: "b", Machine: "m"},
			Promise: func(agent.PromiseRequest) error { time.Sleep(late); return nil },
		}
		dial := func(context.Context, string) (net.Conn, error) {
			ours, theirs := net.Pipe()
			go server.Answer(t.Context(), theirs)
			return ours, nil
		}
		began := time.Now()
		now := func() time.Duration { return time.Hour + time.Since(began) }
		g := NewGate(Config{Now: now, Agent: &agent.Method{Keys: keys, Dial: dial}, Node: "a"})
		until, err := g.askOne(t.Context(), "db", 41, election.Peer{Node: "b", Machine: "m", Agent: "b:1"}, aLease)
		if err != nil || time.Since(began) < late {
			t.Fatalf("answered after %v: %v", time.Since(began), err)
		}
		if want := time.Hour + election.PromiseReach(aLease); until != want {
			t.Errorf("counted on until %v, want %v", until, want)
		}
		if _, err := g.askOne(t.Context(), "db", 41, election.Peer{Node: "b", Machine: "m"}, aLease); err == nil {
			t.Error("promised by somebody without an agent")
		}
	})
}

// P3: the guardians know one deadline for all programs. While promises about running ones put it beyond ZooKeeper's own, nothing else may
// be started.
func TestNothingIsStartedUnderThePromisesForAnother(t *testing.T) {
	g := ended(nil)
	g.told = time.Second
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if g.Enter(ctx, named("db"), &election.Claim{}) || len(g.terms) > 0 {
		t.Error("it may be started")
	}
	g.told = 0
	if !g.Enter(ctx, named("db"), &election.Claim{}) || len(g.terms) != 1 {
		t.Error("it may not be started under ZooKeeper's own deadline")
	}
}

// P1: the child of a term that is about to go on here runs before its claim is known here. No promise covers it, so the deadline is
// ZooKeeper's own, whatever is promised about others.
func TestATermThatIsAboutToGoOnIsCoveredByNoPromise(t *testing.T) {
	g := ended(nil)
	g.Expect([]Term{named("db")})
	o, ok := g.terms[named("db")]
	if !ok || len(g.terms) != 1 {
		t.Fatalf("counted: %v", g.terms)
	}
	if until := o.reach(time.Hour); until != 0 {
		t.Errorf("covered until %v", until)
	}
}

// P3: what is handed over to another image goes on by the guardians' deadline, as if that were ZooKeeper's own.
func TestOnlyADeadlineOfZooKeepersOwnIsKeptAsItIs(t *testing.T) {
	g := ended(&deadlines{})
	unlock, ok := g.TryPlain()
	if !ok || !g.Plain() {
		t.Fatal("it is ZooKeeper's own")
	}
	if _, ok := g.TryPlain(); ok {
		t.Error("somebody may be about to tell the guardians another one")
	}
	unlock()
	g.told = time.Second
	if _, ok := g.TryPlain(); ok {
		t.Error("it is further than ZooKeeper's own")
	}
	if g.told = 0; !g.mu.tryLock() {
		t.Error("it is still kept")
	}
}
