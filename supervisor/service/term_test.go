package service

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"understudy/election"
	"understudy/supervisor/service/role"
	"understudy/supervisor/unit"
)

// P7: a term that has to end does not start its programs again only to stop them.
func TestNothingIsStartedAgainOnceTheTermEnds(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	end()
	runs := made(t, Conf{}, nil).testTerm(t.Context(), Session{}, nil).runs
	runs.held = role.Again
	for range 1000 {
		if e := runs.Wait(ctx); e.Kind != role.StopAsked {
			t.Fatalf("it would be started again: %v", e.Kind)
		}
	}
}

// A session that cannot go on is not an order to stop: the history does not say so, and `run --once` goes on.
func TestASessionThatCannotGoOnIsNoOrderToStop(t *testing.T) {
	for why, want := range map[error]role.Kind{
		election.ErrShortened: role.LeaseEnding, election.ErrTorn: role.LeaseEnding, election.ErrLeaseEnding: role.LeaseEnding,
		ErrGuard: role.LeaseEnding, election.ErrExpired: role.Expired, election.ErrLost: role.LockLost, ErrHandover: role.HandAsked,
		context.Canceled: role.StopAsked,
	} {
		term := made(t, Conf{}, nil).testTerm(t.Context(), Session{}, nil)
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(fmt.Errorf("%w: x", why))
		if e := term.over(ctx); e.Kind != want {
			t.Errorf("%v is taken for %v", why, e.Kind)
		}
		lost := make(chan struct{})
		close(lost)
		if term.lost = lost; term.over(ctx).Kind != role.LockLost && want != role.Expired { // which says more
			t.Errorf("%v hides that the lock is lost", why)
		}
	}
}

// A term that goes on asks ZooKeeper first, which may be gone for any time while promises take its place: a supervisor that is asked to stop
// meanwhile stops.
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

// treeless is a guard that makes no trees, and calls asked instead.
type treeless struct {
	unit.Guard
	asked func(ctx context.Context)
}

func (treeless) Begin(uint64, []byte) error         { return nil }
func (treeless) Extend(uint64, time.Duration) error { return nil }
func (treeless) Finish(uint64) error                { return nil }

func (g treeless) NewTree(ctx context.Context, _ uint64, _ string, _ []byte) (unit.Tree, error) {
	g.asked(ctx)
	return nil, errors.New("no tree")
}

// A session may end while debts of a former supervisor or term are paid: an address that stays would be on two hosts.
func TestWhatASessionsEndInterruptedIsUndoneInTheNext(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	tries := 0
	guard := treeless{asked: func(context.Context) {
		if tries++; tries == 1 {
			end()
		}
	}}
	v := made(t, Conf{}, func(n *Node) {
		n.Commands = unit.NewCommands(func() unit.Guard { return guard }, empty{}.Now)
	})
	v.Remember(Record{Name: "db", Debts: []unit.Debt{{Name: "vip", Command: []string{"true"}, Timeout: time.Second}}})
	for _, ctx := range []context.Context{ctx, t.Context()} {
		if ctx == t.Context() {
			v.Remove() // then nothing else is done
		}
		if err := v.Serve(ctx, Session{Session: &election.Session{}, Epoch: 1}); err != nil {
			t.Fatal(err)
		}
	}
	if tries != 2 || v.unit.Owes() {
		t.Errorf("undone %d times, still owed: %v", tries, v.unit.Debts())
	}
}

// Leave is closed a moment before the contexts of the stays end. Nothing begins in between.
func TestAStayThatHasToLeaveBeginsNoCandidacy(t *testing.T) {
	for _, leaves := range []bool{false, true} {
		v, leave := made(t, Conf{}, nil), make(chan struct{})
		if leaves {
			close(leave)
		}
		want := role.Event{Kind: role.Settled}
		if leaves {
			want.Kind = role.StayOver
		}
		h := newHands(t.Context(), v, Session{Session: &election.Session{}, Leave: leave})
		if got := h.UndoOld(t.Context()); got != want {
			t.Errorf("leaves: %v: %v", leaves, got.Kind)
		}
	}
}
