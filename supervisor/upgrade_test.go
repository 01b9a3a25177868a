package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"understudy/election"
	"understudy/supervisor/child"
	"understudy/supervisor/failsafe"
	"understudy/supervisor/unit"
)

// early is a clock that is far from the end of any lease.
type early struct{ Machine }

func (early) Now() time.Duration { return -time.Hour }

// endless is a guard with a lease that does not end, and a tree that does not die.
type endless struct {
	Guard
	Tree
	asked chan struct{} // for the tree's end
}

func (endless) Over(uint64) <-chan struct{} { return nil }

func (endless) Kind() string { return child.KindCgroup }

func (endless) Leftover(context.Context, string, json.RawMessage) *child.Leftover { return nil }

func (endless) ID() (json.RawMessage, error) { return json.RawMessage(`{}`), nil }

func (e endless) End(ctx context.Context) error {
	e.asked <- struct{}{}
	<-ctx.Done()
	return context.Cause(ctx)
}

// told is an observer that does something of its own in the service's goroutine.
type told struct {
	unobserved
	then func()
}

func (o told) State(State) { o.then() }

// P2, P6: an upgrade that is given up has told services to leave. One that does so only later begins again all the same: else its
// child would run on with nobody looking after it and its lock, and a standby would never stand again.
func TestWhoLeavesTooLateForAnUpgradeBeginsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked, late, guard := make(chan struct{}), make(chan struct{}), endless{asked: make(chan struct{})}
		s := &supervisor{
			cfg:   Config{Logger: hclog.NewNullLogger(), Machine: early{}, Observer: unobserved{}, Upgrade: Upgrade{Asked: asked}},
			log:   hclog.NewNullLogger(),
			guard: guard, stir: make(chan struct{}, 1), beat: make(chan struct{}), births: map[string]election.Birth{}, promises: failsafe.NewPromises(),
			commands: treeless{asked: func(context.Context) { <-late }}.commands(),
		}
		v := s.service(Service{Name: "db"})
		v.begun = true
		v.unit.Restore([]unit.Debt{{Name: "vip", Command: []string{"true"}, Timeout: time.Second}})
		v.unit.UndoBeside(t.Context())
		v.observer = told{then: func() { v.undead = guard }} // its second stay begins with that
		s.services = append(s.services, v)
		sess := &election.Session{}
		ctx, end := context.WithCancel(t.Context())
		served := make(chan error, 1)
		go func() { served <- s.serveAll(ctx, turn{sess: sess, epoch: 1, gate: s.newGate(sess, 1)}) }()
		asked <- struct{}{}
		time.Sleep(leavingFor + time.Second)
		close(late)
		synctest.Wait()
		select {
		case <-guard.asked:
		default:
			t.Error("it does not begin again")
		}
		end()
		<-served
	})
}

// What was about to be handed over of a service runs, also when the service is taken out of the config at that moment.
func TestATermThatWasToBeHandedOverIsNotForgotten(t *testing.T) {
	s := &supervisor{cfg: Config{Observer: unobserved{}}, births: map[string]election.Birth{}}
	v := &service{unit: idle(), name: "db", carried: &carriedTerm{}}
	v.removed.Store(true)
	s.services = append(s.services, v)
	if s.forget(v, nil) || len(s.services) != 1 {
		t.Error("forgotten, with its child running")
	}
	if v.carried = nil; !s.forget(v, nil) || len(s.services) != 0 {
		t.Error("not forgotten, with nothing left of it")
	}
}

// A service that the next image's config does not have is stopped there, though nothing else happens in that session.
func TestACarriedTermOfARemovedServiceIsStopped(t *testing.T) {
	for _, removed := range []bool{true, false} {
		s := &supervisor{births: map[string]election.Birth{}}
		v := &service{unit: idle(), name: "db", carried: &carriedTerm{}}
		v.removed.Store(removed)
		s.services = append(s.services, v)
		stops, stopped := map[*service]context.CancelCauseFunc{}, false
		s.arrange(t.Context(), stops, map[*service]error{}, func(v *service) { stops[v] = func(error) { stopped = true } })
		if stopped != removed {
			t.Errorf("removed %v: stopped %v", removed, stopped)
		}
	}
}

// moving is a guard that hands over at once.
type moving struct {
	Guard
	deaf chan struct{} // it learns of a shorter lease once this is closed
}

func (m moving) Shorten(context.Context, uint64, time.Duration, child.Watchdog) error {
	<-m.deaf
	return nil
}

func (moving) Extend(uint64, time.Duration) error { return nil }

func (moving) HandOver(_ context.Context, _ uint64, _ int, do func(json.RawMessage) error) error {
	return do(json.RawMessage("{}"))
}

func (moving) Adopted(json.RawMessage) (Tree, bool) { return nil, false }

// P3: the next image takes the guardians' deadline for ZooKeeper's own. What goes further, by promises about what runs now, would
// be the deadline of what is started there, too.
func TestNothingIsHandedOverWhileTheDeadlineIsNotZooKeepersOwn(t *testing.T) {
	for name, c := range map[string]struct {
		another bool // the guardians know another one than ZooKeeper's own
		busy    bool // they are being told another one
		still   bool
	}{
		"ZooKeeper's own": {false, false, true},
		"another":         {true, false, false},
		"changing":        {false, true, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &supervisor{cfg: Config{Logger: hclog.NewNullLogger(), Machine: early{}}, log: hclog.NewNullLogger(), commands: treeless{}.commands()}
			guard := moving{deaf: make(chan struct{})}
			s.guard = guard
			at := turn{sess: &election.Session{}, epoch: 1}
			at.gate = s.newGate(at.sess, at.epoch)
			told := make(chan error, 1)
			if c.busy || c.another { // a lease that is over ends at its first moment for the guardians, and before that for ZooKeeper
				go func() { told <- at.gate.Shorten(t.Context()) }()
			} else {
				told <- nil
			}
			if synctest.Wait(); !c.busy {
				close(guard.deaf)
				synctest.Wait()
			}
			began, m := time.Now(), &move{since: time.Now()}
			var err error
			for err == nil && time.Since(began) <= passingFor && m.step == waiting {
				err = s.moveOn(t.Context(), at, m, map[*service]context.CancelCauseFunc{})
				time.Sleep(moveLook)
			}
			if waited := time.Since(began); errors.Is(err, errHeld) == c.still || (waited >= passingFor) == c.still {
				t.Errorf("%s: after %v: %v", name, waited, err)
			}
			if err := s.tryBecome(t.Context(), guard, at); errors.Is(err, errHeld) == c.still {
				t.Errorf("%s, at the last moment: %v", name, err)
			}
			if c.busy {
				close(guard.deaf)
			}
			if err := <-told; err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if err := at.gate.Extend(0); err != nil { // else it waits for ever
				t.Errorf("%s, afterwards: %v", name, err)
			}
		})
	}
}

// Who goes on with a term asks ZooKeeper first. It may be gone, with promises in its place, for as long as one likes: a supervisor
// that is asked to stop meanwhile does.
func TestNobodyWaitsForZooKeeperForEverWhoIsToStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		parent, removed := context.WithCancel(t.Context())
		leave := make(chan struct{})
		ctx, enough := linger(parent, leave, time.Second)
		defer enough()
		removed()
		time.Sleep(time.Hour)
		if ctx.Err() != nil {
			t.Error("over, though the supervisor stays: its lock would, too")
		}
		close(leave)
		time.Sleep(time.Second - time.Millisecond)
		if synctest.Wait(); ctx.Err() != nil {
			t.Error("over at once")
		}
		time.Sleep(time.Millisecond)
		if synctest.Wait(); ctx.Err() == nil {
			t.Error("not over")
		}
	})
}

// P7: an image that shows credentials which nothing belongs to yet loses its session, and all that runs.
func TestAnUpgradeWaitsForChangedCredentials(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, other := &election.Auth{Scheme: "digest", Secrets: [][]byte{[]byte("a:b")}}, &election.Auth{Scheme: "digest", Secrets: [][]byte{[]byte("c:d")}}
		s := &supervisor{cfg: Config{Logger: hclog.NewNullLogger(), Machine: early{}}, log: hclog.NewNullLogger(), guard: moving{}, commands: treeless{}.commands()}
		s.credentials = credentials{read: func() (*election.Auth, error) { return other, nil }, shown: one, look: make(chan struct{}, 1)}
		at := turn{sess: &election.Session{}, epoch: 1}
		at.gate = s.newGate(at.sess, at.epoch)
		m := &move{since: time.Now()}
		ask := func() error { return s.moveOn(t.Context(), at, m, map[*service]context.CancelCauseFunc{}) }
		if err := ask(); err != nil || m.step != waiting || len(s.credentials.look) != 1 {
			t.Errorf("with changed credentials: %v, step %v", err, m.step)
		}
		time.Sleep(passingFor)
		if err := ask(); !errors.Is(err, errUnshown) {
			t.Errorf("later: %v", err)
		}
		s.showing(other)
		if err := ask(); errors.Is(err, errUnshown) || m.step == waiting {
			t.Errorf("once they are shown: %v", err)
		}
	})
}

// P1: what was handed over runs before its term goes on here: the gate has to know of it, and of nothing else.
func TestOnlyATermThatWasHandedOverIsExpected(t *testing.T) {
	carried, other := &service{name: "db", carried: &carriedTerm{}}, &service{name: "web"}
	s := &supervisor{services: []*service{carried, other}}
	if got := s.carriedTerms(); len(got) != 1 || got[0] != (gated{carried}) {
		t.Errorf("expected: %v", got)
	}
}

// An agent may be asked for a death before the term goes on: what the child's oneshots did, an address say, is still there then.
func TestWhatIsCarriedIsVouchedForFromTheStart(t *testing.T) {
	v := &service{name: "db", promises: failsafe.NewPromises(), unit: idle()}
	id := json.RawMessage(`{"tree":1}`)
	v.remember(carriedService{Name: "db", Debts: []unit.Debt{{Name: "vip"}}, Term: &carriedTerm{Tree: id}})
	first := v.mortals.find(id)
	if first == nil || !first.owes() {
		t.Fatalf("known of it: %+v", first)
	}
	again := v.mortal(id, nil, func(error) {})
	if v.mortals.add(again); v.mortals.find(id) != again {
		t.Error("its former stay is found")
	}
}
