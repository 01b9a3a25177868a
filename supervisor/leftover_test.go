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
	"understudy/fencing"
	"understudy/supervisor/child"
	"understudy/supervisor/failsafe"
)

// An upgrade that would wait for a death that nobody can tell the time of is given up at once: else the config of all services stays as
// it is meanwhile.
func TestNoUpgradeWaitsForATreeThatIsNotProvedDead(t *testing.T) {
	s := &supervisor{}
	v := &service{name: "db"}
	for _, step := range []moveStep{waiting, endingPassing, letting} {
		v.stance.Store(stuck)
		stopped := false
		stops := map[*service]context.CancelCauseFunc{v: func(error) { stopped = true }}
		if ready, err := s.advance(&move{step: step, since: time.Now()}, stops); ready || !errors.Is(err, errNotNow) || stopped {
			t.Errorf("step %d: ready %v, stopped %v, %v", step, ready, stopped, err)
		}
	}
}

// P2: a service that was removed is not forgotten as long as something of it may be alive, in whatever session.
func TestAServiceThatLeftSomethingIsNotForgotten(t *testing.T) {
	for name, left := range map[string]func(*service){
		"its own tree":      func(v *service) { v.undead = &tomb{} },
		"a former tree":     func(v *service) { v.alive = "pid 7" },
		"nothing of either": func(*service) {},
	} {
		s := &supervisor{cfg: Config{Observer: unobserved{}}, births: map[string]election.Birth{}}
		v := &service{unit: idle(), name: "db"}
		v.removed.Store(true)
		left(v)
		s.services = append(s.services, v)
		if gone := s.forget(v, nil); gone != (name == "nothing of either") {
			t.Errorf("%s: forgotten: %v", name, gone)
		}
	}
}

// haunted is a guard of a machine where something is left for a while.
type haunted struct {
	Guard
	left func() *child.Leftover
}

func (haunted) Kind() string { return child.KindCgroup }

func (haunted) Finish(uint64) error { return nil }

func (h haunted) Leftover(context.Context, string, json.RawMessage) *child.Leftover { return h.left() }

// P1: whatever the breadcrumb says, nothing is started beside what a former supervisor has left here.
func TestNothingIsStartedBesideALeftover(t *testing.T) {
	l := &child.Leftover{Pid: 7, Program: "db", State: "D (disk sleep)"}
	v := &service{name: "db", log: hclog.NewNullLogger(), guard: haunted{left: func() *child.Leftover { return l }}}
	err := v.alone(t.Context())
	if ev := v.refusal(t.Context(), err); ev != formerAlive || v.refused || v.failure == "" {
		t.Errorf("%v: %v, refused %v, %q", err, ev, v.refused, v.failure)
	}
	l = nil
	if err := v.alone(t.Context()); err != nil {
		t.Error(err)
	}
}

// A later session holds nothing of a tree that an earlier one could not prove dead: it can be closed. That of the tree itself cannot.
func TestOnlyTheSessionOfAnUnprovedTreeIsLeftToExpire(t *testing.T) {
	for grave, kept := range map[uint64]bool{1: false, 2: true} {
		synctest.Test(t, func(t *testing.T) {
			s := &supervisor{cfg: Config{Logger: hclog.NewNullLogger(), Machine: early{}, Observer: unobserved{}}, promises: failsafe.NewPromises()}
			v := s.service(Service{Name: "db"})
			v.guard = haunted{left: func() *child.Leftover { return nil }}
			v.undead, v.grave = &undying{}, grave
			ctx, end := context.WithCancel(t.Context())
			end()
			buried, err := v.bury(ctx, ctx, nil, 2)
			if buried || errors.Is(err, errUndead) != kept {
				t.Errorf("of session %d: %v, %v", grave, buried, err)
			}
		})
	}
}

// What was said of a tree that is dead at last is not said any longer, though nobody had to wait for that.
func TestNothingIsSaidOfATreeThatIsDeadAtLast(t *testing.T) {
	v := &service{name: "db", log: hclog.NewNullLogger(), guard: haunted{left: func() *child.Leftover { return nil }}, promises: failsafe.NewPromises(), unit: idle()}
	v.undead, v.alive = &named{}, "pid 7"
	over, end := context.WithCancel(t.Context())
	end() // nothing can be said in ZooKeeper any more
	if buried, err := v.bury(over, over, &election.Session{}, 2); !buried || err != nil || v.alive != "" || v.undead != nil {
		t.Errorf("%v, %v, %q, %v", buried, err, v.alive, v.undead)
	}
}

// named is a tree that is dead, and known by its name.
type named struct{ Tree }

func (named) ID() (json.RawMessage, error) { return json.RawMessage(`{}`), nil }

func (named) End(context.Context) error { return nil }

// undying is a tree that does not die.
type undying struct{ Tree }

func (undying) ID() (json.RawMessage, error) { return json.RawMessage(`{}`), nil }

func (undying) End(context.Context) error { return child.ErrUnproved }

// Whoever was seen alive is said to be, in the breadcrumb; who just did not answer is not.
func TestOnlyWhoIsSeenAliveIsSaidToBe(t *testing.T) {
	seen := &child.AliveError{Leftover: child.Leftover{Pid: 7}, Err: child.ErrUnproved}
	for err, said := range map[error]bool{
		errors.Join(fencing.ErrRefused, seen):                    true,
		errors.Join(fencing.ErrRefused, fencing.ErrAlive):        true,
		errors.Join(fencing.ErrRefused, errors.New("no answer")): false,
		errors.Join(election.ErrLost, seen):                      false,
		nil:                                                      false,
	} {
		if seenAlive(err) != said {
			t.Errorf("%v: said %v", err, !said)
		}
	}
}
