package service

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"understudy/election"
	"understudy/supervisor/child"
	"understudy/supervisor/host"
	"understudy/supervisor/service/role"
	"understudy/supervisor/unit"
)

// P7: a term that has to end does not start its programs again only to stop them.
func TestNothingIsStartedAgainOnceTheTermEnds(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	end()
	stay := made(t, Conf{}, nil).testStay(t.Context(), Session{}, nil)
	stay.term.run.held = role.Again
	for range 1000 {
		if e := stay.Wait(ctx); e.Kind != role.StopAsked {
			t.Fatalf("it would be started again: %v", e.Kind)
		}
	}
}

// A session that cannot go on is not an order to stop: the history does not say so, and `run --once` goes on.
func TestASessionThatCannotGoOnIsNoOrderToStop(t *testing.T) {
	for why, want := range map[error]role.EventKind{
		election.ErrTorn: role.LeaseEnding, election.ErrLeaseEnding: role.LeaseEnding,
		election.ErrUnresolved: role.LeaseEnding, ErrGuard: role.LeaseEnding, election.ErrExpired: role.Expired, election.ErrLost: role.LockLost, ErrHandover: role.HandAsked,
		context.Canceled: role.StopAsked,
	} {
		stay := made(t, Conf{}, nil).testStay(t.Context(), Session{}, nil)
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(fmt.Errorf("%w: x", why))
		if e := stay.term.over(ctx); e.Kind != want {
			t.Errorf("%v is taken for %v", why, e.Kind)
		}
		lost := make(chan struct{})
		close(lost)
		if stay.term.lost = lost; stay.term.over(ctx).Kind != role.LockLost && want != role.Expired { // which says more
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

// shell is a guard whose trees run each command by a function, which returns its exit code.
type shell struct {
	host.Guard
	run func(ctx context.Context, argv []string) (code int)
}

func (shell) Begin(uint64, []byte) error         { return nil }
func (shell) Extend(uint64, time.Duration) error { return nil }
func (shell) Finish(uint64) error                { return nil }

func (g shell) NewTree(context.Context, uint64, string, []byte) (host.Tree, error) {
	return shellTree{run: g.run}, nil
}

type shellTree struct {
	host.Tree
	run  func(context.Context, []string) int
	told *[]bool // whether its effects are undone; nil: nobody asks
}

func (t shellTree) Start(ctx context.Context, spec child.Spec) (host.Process, error) {
	return exited{status: child.ExitStatus{Code: t.run(ctx, spec.Argv)}}, nil
}

func (shellTree) End(context.Context) error { return nil }

func (t shellTree) ReportUndone(undone bool) {
	if t.told != nil {
		*t.told = append(*t.told, undone)
	}
}

// exited is a process that has ended.
type exited struct {
	host.Process
	status child.ExitStatus
}

func (p exited) Wait(context.Context) (child.ExitStatus, error) { return p.status, nil }
func (exited) Kill(context.Context) error                       { return nil }

// A session may end while pending undos of a previous supervisor or term are paid: an address that stays would be on two hosts.
func TestWhatASessionsEndInterruptedIsUndoneInTheNext(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	tries := 0
	guard := shell{run: func(context.Context, []string) int {
		if tries++; tries == 1 {
			end()
			return 137
		}
		return 0
	}}
	v := made(t, Conf{}, func(n *LocalNode) {
		n.Commands = unit.NewCommands(func() host.Guard { return guard }, empty{}.Now)
	})
	v.Remember(CarriedService{Name: "db", PendingUndos: []unit.PendingUndo{{Name: "vip", Command: []string{"true"}, Timeout: time.Second}}})
	for _, ctx := range []context.Context{ctx, t.Context()} {
		if ctx == t.Context() {
			v.Remove() // then nothing else is done
		}
		if err := v.Serve(ctx, Session{Session: &election.Session{}, Epoch: 1}); err != nil {
			t.Fatal(err)
		}
	}
	if tries != 2 || v.unit.HasPendingEffects() {
		t.Errorf("undone %d times, still owed: %v", tries, v.unit.PendingUndos())
	}
}

// Leave is closed a moment before the contexts of the stays end. Nothing begins in between.
func TestAStayThatHasToLeaveBeginsNoCandidacy(t *testing.T) {
	for _, leaves := range []bool{false, true} {
		v, leave := made(t, Conf{}, nil), make(chan struct{})
		if leaves {
			close(leave)
		}
		want := role.Event{Kind: role.Undone}
		if leaves {
			want.Kind = role.StayOver
		}
		h := newStay(t.Context(), v, Session{Session: &election.Session{}, Leave: leave})
		if got := h.UndoOld(t.Context()); got != want {
			t.Errorf("leaves: %v: %v", leaves, got.Kind)
		}
	}
}

func (shellTree) ID() (json.RawMessage, error) { return json.RawMessage(`{"of":"a"}`), nil }
