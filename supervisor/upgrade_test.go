package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"understudy/election"
	"understudy/supervisor/child/box"
	"understudy/supervisor/handoff"
	"understudy/supervisor/host"
	"understudy/supervisor/service"
	"understudy/supervisor/unit"
)

// early is a clock that is far from the end of any lease.
type early struct{ host.Machine }

func (early) Now() time.Duration { return -time.Hour }

// endless is a guard with a lease that does not end, of a machine where each look for what is left but the
// first takes as long as it may.
type endless struct {
	host.Guard
	looks chan int
}

func (endless) Over(uint64) <-chan struct{} { return nil }

func (endless) Kind() string { return box.KindCgroup }

func (e endless) Leftover(ctx context.Context, _ string, _ json.RawMessage) *box.Leftover {
	n := <-e.looks + 1
	if e.looks <- n; n > 1 {
		<-ctx.Done()
	}
	return nil
}

// treeless is a guard that makes no trees, and calls asked instead.
type treeless struct {
	host.Guard
	asked func(ctx context.Context)
}

func (treeless) Begin(uint64, []byte) error         { return nil }
func (treeless) Extend(uint64, time.Duration) error { return nil }
func (treeless) Finish(uint64) error                { return nil }

func (g treeless) NewTree(ctx context.Context, _ uint64, _ string, _ []byte) (host.Tree, error) {
	g.asked(ctx)
	return nil, errors.New("no tree")
}

// commands run under it.
func (g treeless) commands() *unit.Commands {
	return unit.NewCommands(func() host.Guard { return g }, early{}.Now)
}

// P2, P6: before an upgrade is given up, services were told to leave. One that leaves only later begins again: otherwise nobody would look
// after its child and its lock, and a standby would never be a candidate again.
func TestWhoLeavesTooLateForAnUpgradeBeginsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked, late, guard := make(chan struct{}), make(chan struct{}), endless{looks: make(chan int, 1)}
		guard.looks <- 0
		s := small(Config{Machine: early{}, Upgrade: Upgrade{Asked: asked}, Servers: []string{t.Name()}})
		s.guard = guard
		undone := make(chan struct{}, 10)
		s.commands = treeless{asked: func(context.Context) { undone <- struct{}{}; <-late }}.commands()
		v := s.roster.add(service.Conf{Name: "db"})
		v.Remember(service.CarriedService{Name: "db", PendingUndos: []unit.PendingUndo{{Name: "vip", Command: []string{"true"}, Timeout: time.Second}}})
		sess := &election.Session{}
		ctx, end := context.WithCancel(t.Context())
		served := make(chan error, 1)
		go func() { served <- s.serveAll(ctx, service.Session{Session: sess, Epoch: 1, Gate: s.newGate(sess, 1)}) }()
		<-undone // its first stay is about that
		asked <- struct{}{}
		time.Sleep(handoff.LeavingFor + time.Second)
		close(late)
		synctest.Wait()
		looks := <-guard.looks
		if guard.looks <- looks; looks != 2 { // a stay begins with that
			t.Errorf("it does not begin again: %d stays", looks)
		}
		end()
		<-served
		v.Close()
	})
}

// A service that is taken out of the config while its term is handed over still runs: it must not be forgotten.
func TestATermThatWasToBeHandedOverIsNotForgotten(t *testing.T) {
	s := small(Config{})
	v := handedOn(t, s, &tomb{}, nil)
	v.Remove()
	if s.roster.forget(v, nil) || len(s.roster.services) != 1 {
		t.Error("forgotten, with its child running")
	}
	if v.Remember(service.CarriedService{Name: "db"}); s.roster.forget(v, errors.New("x")) || len(s.roster.services) != 1 {
		t.Error("forgotten, though something of it may be alive")
	}
	if !s.roster.forget(v, nil) || len(s.roster.services) != 0 {
		t.Error("not forgotten, with nothing left of it")
	}
}

// A service that is not in the next image's config is stopped there, even if nothing else happens in that session.
func TestACarriedTermOfARemovedServiceIsStopped(t *testing.T) {
	for _, removed := range []bool{true, false} {
		s := small(Config{})
		v := handedOn(t, s, &tomb{}, nil)
		if removed {
			v.Remove()
		}
		stops, stopped := map[*service.Service]context.CancelCauseFunc{}, false
		s.roster.arrange(t.Context(), stops, map[*service.Service]error{}, func(v *service.Service) { stops[v] = func(error) { stopped = true } })
		if stopped != removed {
			t.Errorf("removed %v: stopped %v", removed, stopped)
		}
	}
}

// moving is a guard that hands over at once.
type moving struct{ host.Guard }

func (moving) Extend(uint64, time.Duration) error { return nil }

func (moving) HandOver(_ context.Context, _ map[uint64]int, do func(json.RawMessage) error) error {
	return do(json.RawMessage("{}"))
}

func (moving) Adopted(json.RawMessage) (host.Tree, bool) { return nil, false }

// P7: an image that shows credentials that cannot open the znodes yet loses its session, and everything that runs.
func TestAnUpgradeWaitsForChangedCredentials(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, other := &election.Auth{Scheme: "digest", Secrets: [][]byte{[]byte("a:b")}}, &election.Auth{Scheme: "digest", Secrets: [][]byte{[]byte("c:d")}}
		s := small(Config{Machine: early{}})
		s.guard, s.commands = moving{}, treeless{}.commands()
		s.credentials = newCredentials(one, s.log, func() {}, func() {})
		s.credentials.read = func() (*election.Auth, error) { return other, nil }
		at := service.Session{Session: &election.Session{}, Epoch: 1}
		at.Gate = s.newGate(at.Session, at.Epoch)
		m := handoff.Begin()
		ask := func() error { return s.moveOn(t.Context(), at, m, map[*service.Service]context.CancelCauseFunc{}) }
		if err := ask(); err != nil || len(s.credentials.look) != 1 {
			t.Errorf("with changed credentials: %v", err)
		}
		time.Sleep(handoff.PassingFor)
		if err := ask(); !errors.Is(err, handoff.ErrUnshown) {
			t.Errorf("later: %v", err)
		}
		s.credentials.showing(other)
		if err := ask(); err == nil || errors.Is(err, handoff.ErrUnshown) { // a session that is over cannot be handed over
			t.Errorf("once they are shown: %v", err)
		}
	})
}

// P1: a term that was handed over runs before it goes on here: the gate has to know of it, and of no other.
func TestOnlyATermThatWasHandedOverIsExpected(t *testing.T) {
	s := small(Config{})
	s.roster.add(service.Conf{Name: "web"})
	carried := handedOn(t, s, &tomb{}, nil)
	if got := s.roster.carried(); len(got) != 1 || got[0] != carried.Term() {
		t.Errorf("expected: %v", got)
	}
}
