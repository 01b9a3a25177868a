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

func (d *deadlines) Shorten(_ context.Context, end, _ time.Duration) error { d.last = end; return nil }

// ended is the gate of a session whose lease ends at 0, an hour ago.
func ended(guardians guardians) *Gate {
	return NewGate(Config{Session: &election.Session{}, Guardians: guardians, Now: func() time.Duration { return time.Hour }, Log: hclog.NewNullLogger()})
}

// P1: a promise binds from when the question is heard, so it counts from when the question was sent, however late the answer comes.
func TestPromiseIsCountedFromTheQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const late = aSession / 10
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
		until, err := g.askOne(t.Context(), "db", 41, election.Peer{Node: "b", Machine: "m", Agent: "b:1"}, aSession)
		if err != nil || time.Since(began) < late {
			t.Fatalf("answered after %v: %v", time.Since(began), err)
		}
		if want := time.Hour + election.PromiseReach(aSession); until != want {
			t.Errorf("counted on until %v, want %v", until, want)
		}
		if _, err := g.askOne(t.Context(), "db", 41, election.Peer{Node: "b", Machine: "m"}, aSession); err == nil {
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

// P3: an acknowledgement under a longer timeout changes nothing if it reaches the guardians after the shorter deadline.
func TestAnExtensionFromBeforeAShorterGrantIsNotTold(t *testing.T) {
	guardians := &deadlines{}
	g := ended(guardians)
	g.told = time.Second
	if err := g.Shorten(t.Context()); err != nil || guardians.last != 1 || g.told != 1 { // over, and not: none has begun
		t.Fatalf("told %v: %v", guardians.last, err)
	}
	if err := g.Extend(time.Second); err != nil || guardians.last > 1 {
		t.Errorf("told %v: %v", guardians.last, err)
	}
}

// P1: a deadline by promises stands as long as promises cover everything that runs, whatever timeout ZooKeeper grants.
func TestAShorterGrantEndsNoMoreThanItHasTo(t *testing.T) {
	g := ended(&deadlines{})
	g.held, g.told = true, 2*time.Hour
	if end := g.limit(); end != 2*time.Hour {
		t.Errorf("with nothing that needs a promise it ends at %v", end)
	}
	g.Expect([]Term{named("db")})
	if end := g.limit(); end != 0 {
		t.Errorf("with a term that nothing is promised about it ends at %v", end)
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
