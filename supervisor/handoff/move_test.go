package handoff

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"understudy/election"
	"understudy/supervisor/failsafe"
	"understudy/supervisor/host"
	"understudy/supervisor/service"
	"understudy/supervisor/wait"
)

// guardians learn of a deadline once told is closed.
type guardians struct{ told chan struct{} }

func (g guardians) Extend(time.Duration) error { <-g.told; return nil }

// guard hands over at once.
type guard struct{ host.Guard }

func (guard) HandOver(_ context.Context, _ map[uint64]int, do func(json.RawMessage) error) error {
	return do(json.RawMessage("{}"))
}

// sender is a Sender whose lease was just extended.
func sender(g guardians) Sender {
	sess := &election.Session{}
	gate := failsafe.NewGate(failsafe.Config{Session: sess, Guardians: g, Now: func() time.Duration { return 0 }, Log: hclog.NewNullLogger()})
	return Sender{
		Session: service.Session{Session: sess, Epoch: 1, Gate: gate}, Guard: guard{}, Write: func() Envelope { return Envelope{} },
		Now: func() time.Duration { return -time.Hour }, Log: hclog.NewNullLogger(),
	}
}

func settled() error { return nil }

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
			g := guardians{told: make(chan struct{})}
			s := sender(g)
			told := make(chan error, 1)
			if c.busy || c.another { // the lease is over for ZooKeeper
				go func() { told <- s.Gate.Extend(time.Hour) }()
			} else {
				told <- nil
			}
			if synctest.Wait(); !c.busy {
				close(g.told)
				synctest.Wait()
			}
			began, m := time.Now(), Begin()
			var err error
			for err == nil && time.Since(began) <= PassingFor && m.step == waiting {
				err = m.On(t.Context(), s, nil, settled)
				time.Sleep(Look)
			}
			if waited := time.Since(began); errors.Is(err, errHeld) == c.still || (waited >= PassingFor) == c.still {
				t.Errorf("%s: after %v: %v", name, waited, err)
			}
			if err := s.try(t.Context()); errors.Is(err, errHeld) == c.still {
				t.Errorf("%s, at the last moment: %v", name, err)
			}
			if c.busy {
				close(g.told)
			}
			if err := <-told; err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if err := s.Gate.Extend(0); err != nil { // else it waits for ever
				t.Errorf("%s, afterwards: %v", name, err)
			}
		})
	}
}

// posed is a service of which an upgrade finds something.
type posed struct{ finds service.UpgradeState }

func (*posed) Name() string { return "db" }

func (p *posed) Upgrade() service.UpgradeState { return p.finds }

// An upgrade is given up at once if it would have to wait for a death that may never come: changes of the config would wait as well.
func TestNoUpgradeWaitsForATreeThatIsNotProvedDead(t *testing.T) {
	for finds, why := range map[service.UpgradeState]string{
		service.Stuck: "the program of db is not proved dead;", service.NotUndone: "the effects of db are not undone;",
		service.Unreleased: "the lock of db cannot be given back;", service.Mending: "prepare or reclone of db is running here; upgrade once",
	} {
		for _, at := range []step{waiting, endingPassing, letting} {
			left := false
			all := []Serving{{&posed{finds}, func(error) { left = true }}}
			if ready, err := (&Move{step: at, since: time.Now()}).advance(all); ready || !errors.Is(err, ErrNotNow) || left || !strings.Contains(err.Error(), why) {
				t.Errorf("step %d: ready %v, left %v, %v", at, ready, left, err)
			}
		}
	}
}

// An upgrade waits for what passes, stops it when that takes too long, and then has all services leave, each told once.
func TestServicesLeaveInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow, runs := &posed{service.Passing}, &posed{service.Fit}
		var told []*posed
		leave := func(p *posed) context.CancelCauseFunc {
			return func(why error) {
				if told = append(told, p); !errors.Is(why, service.ErrHandover) {
					t.Errorf("told to leave by %v", why)
				}
			}
		}
		all := []Serving{{slow, leave(slow)}, {runs, leave(runs)}}
		m := Begin()
		for range 3 {
			if ready, err := m.advance(all); ready || err != nil || len(told) != 0 {
				t.Fatalf("at once: ready %v, %v, %d told", ready, err, len(told))
			}
		}
		time.Sleep(PassingFor)
		for range 3 {
			if ready, err := m.advance(all); ready || err != nil || len(told) != 1 || told[0] != slow {
				t.Fatalf("later: ready %v, %v, %d told", ready, err, len(told))
			}
		}
		all = all[1:]
		for range 3 {
			if ready, err := m.advance(all); ready || err != nil || len(told) != 2 || told[1] != runs {
				t.Fatalf("then: ready %v, %v, %d told", ready, err, len(told))
			}
		}
		if ready, err := m.advance(nil); !ready || err != nil {
			t.Errorf("in the end: ready %v, %v", ready, err)
		}
		time.Sleep(LeavingFor + time.Millisecond)
		if ready, err := m.advance(all); ready || !errors.Is(err, ErrNotNow) {
			t.Errorf("with one that stays: ready %v, %v", ready, err)
		}
	})
}

// The exec would wait for a thread that no signal ends, with nobody to extend the lease.
func TestNothingIsHandedOverWhileAThreadHangs(t *testing.T) {
	s := sender(guardians{told: make(chan struct{})})
	wait.Stuck.Add(1)
	err := s.try(t.Context())
	wait.Stuck.Add(-1)
	if !errors.Is(err, errStuck) || !errors.Is(err, ErrNotNow) {
		t.Error(err)
	}
	s.Hangs = func() bool { return true }
	if err := s.try(t.Context()); !errors.Is(err, errStuck) {
		t.Error(err)
	}
}
