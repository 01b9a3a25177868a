package election

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"understudy/election/jute"
	"understudy/election/zkmem"
)

// toldTimeout is what nodes/<node> says of the session's timeout, in milliseconds.
func toldTimeout(ctx context.Context, s *Session, node string) (int64, error) {
	v, err := s.get(ctx, NodesDir("/understudy")+"/"+node)
	if err != nil {
		return 0, err
	}
	n, err := decode[Node](v.data)
	return n.SessionMs, err
}

func TestANodeTellsTheTimeoutThatItWasGranted(t *testing.T) {
	inWorld(t, func(w *world) {
		w.within("a", func(ctx context.Context, s *Session) error {
			told, err := toldTimeout(ctx, s, "a")
			if want := testTimeout.Milliseconds(); told != want {
				w.Errorf("nodes/a tells %d ms, not %d", told, want)
			}
			return err
		})
	})
}

// granting opens a session of 20 s, and has the server grant at least and at most so much from a restart on.
func (w *world) granting(first, then time.Duration, f func(ctx context.Context, s *Session) error) error {
	w.Helper()
	w.zk.SetBounds(first, first)
	e := New(w.config("a"))
	defer e.Wait()
	return e.Open(w.Context(), func(ctx context.Context, s *Session) error {
		if s.Timeout() != first {
			w.Fatalf("granted %v, not %v", s.Timeout(), first)
		}
		time.Sleep(first / 2)
		again := s.Resumed()
		w.zk.SetBounds(then, then)
		w.zk.ElectLeader()
		<-again
		return f(ctx, s)
	})
}

// P3, wherever the servers are cut off after a reconnect.
func TestAShorterGrantShortensTheLease(t *testing.T) {
	for n := range 20 {
		inWorld(t, func(w *world) {
			err := w.granting(6*time.Second, 2*time.Second, func(_ context.Context, s *Session) error {
				time.Sleep(time.Duration(n) * 50 * time.Millisecond)
				defer w.zk.Cut(zkmem.Everyone, zkmem.Both)()
				cut := w.now()
				<-s.Ended()
				if !slices.Contains(w.zk.Sessions(), s.ID()) {
					w.Errorf("cut off %d * 50 ms after the reconnect: the session was over before the lease, %v after the cut", n, w.now()-cut)
				}
				return nil
			})
			if !errors.Is(err, ErrLeaseEnding) {
				w.Errorf("ended by %v", err)
			}
		})
	}
}

// P7.
func TestAShorterGrantIsLivedWith(t *testing.T) {
	inWorld(t, func(w *world) {
		err := w.granting(20*time.Second, 2*time.Second, func(ctx context.Context, s *Session) error {
			time.Sleep(30 * time.Second)
			if ctx.Err() != nil {
				w.Errorf("it was ended: %v", context.Cause(ctx))
			}
			told, err := toldTimeout(ctx, s, "a")
			if told != 2000 || s.Timeout() != 2*time.Second {
				w.Errorf("counts with %v, and tells %d ms", s.Timeout(), told)
			}
			return err
		})
		if err != nil {
			w.Error(err)
		}
	})
}

// P3: a new leader gives a session the timeout back that it was opened with, whatever was granted since.
func TestALongerGrantIsNotUsed(t *testing.T) {
	for n := range 20 {
		inWorld(t, func(w *world) {
			err := w.granting(2*time.Second, 8*time.Second, func(_ context.Context, s *Session) error {
				time.Sleep(3*time.Second + time.Duration(n)*50*time.Millisecond)
				w.zk.Cut(zkmem.Everyone, zkmem.Both)
				w.zk.ElectLeader()
				<-s.Ended()
				if !slices.Contains(w.zk.Sessions(), s.ID()) {
					w.Errorf("cut off at %d: the session was over before the lease", n)
				}
				return nil
			})
			if !errors.Is(err, ErrLeaseEnding) {
				w.Errorf("ended by %v", err)
			}
		})
	}
}

// P3: nothing is done in the session before whoever keeps to its end knows of the shorter one.
func TestAShorterGrantIsToldBeforeTheSessionIsUsed(t *testing.T) {
	inWorld(t, func(w *world) {
		w.zk.SetBounds(6*time.Second, 6*time.Second)
		w.within("a", func(ctx context.Context, s *Session) error {
			told, goOn := make(chan time.Duration, 1), make(chan struct{})
			s.OnShortened(func(context.Context) error {
				told <- s.Lease.End()
				<-goOn
				return nil
			})
			before := s.Lease.End()
			w.zk.SetBounds(3*time.Second, 3*time.Second)
			w.zk.ElectLeader()
			end := <-told
			if left := end - w.now(); left > LeaseLength(3*time.Second) || end >= before {
				w.Errorf("told of %v that are left", left)
			}
			sets := w.zk.Requests()[jute.OpSetData]
			time.Sleep(time.Second)
			if now := w.zk.Requests()[jute.OpSetData]; now != sets || s.Lease.End() != end {
				w.Errorf("%d heartbeats meanwhile, the lease ends %v later", now-sets, s.Lease.End()-end)
			}
			close(goOn)
			time.Sleep(time.Second)
			if s.Lease.End() <= end || ctx.Err() != nil {
				w.Error("it does not go on")
			}
			return nil
		})
	})
}

func TestASessionEndsInOrderWhenAShorterGrantCannotBeTold(t *testing.T) {
	inWorld(t, func(w *world) {
		err := w.granting(6*time.Second, 6*time.Second, func(ctx context.Context, s *Session) error {
			s.OnShortened(func(context.Context) error { return errors.New("no guardian answers") })
			w.zk.SetBounds(3*time.Second, 3*time.Second)
			w.zk.ElectLeader()
			<-ctx.Done()
			if s.Over() != nil {
				w.Error("there is no time left to stop")
			}
			return nil
		})
		if !errors.Is(err, ErrShortened) {
			w.Errorf("ended by %v", err)
		}
	})
}

// P3, where a floor is configured: a server that was asked may have granted that little, whoever learns of it.
func TestTheFloorCoversAGrantThatNobodyReadsOf(t *testing.T) {
	const floor = 2 * time.Second
	for n := range 20 {
		inWorld(t, func(w *world) {
			e := New(func() Config { c := w.config("a"); c.Timeout, c.Floor = 8*time.Second, floor; return c }())
			defer e.Wait()
			err := e.Open(w.Context(), func(_ context.Context, s *Session) error {
				if s.Timeout() >= 4*time.Second || s.Timeout() < floor {
					w.Fatalf("counts with %v", s.Timeout())
				}
				time.Sleep(time.Duration(n) * 20 * time.Millisecond)
				w.zk.SetBounds(floor, floor)
				w.zk.LoseReply(zkmem.Match{Op: jute.OpCreateSession, Count: zkmem.Always})
				w.zk.ElectLeader()
				<-s.Ended()
				if !slices.Contains(w.zk.Sessions(), s.ID()) {
					w.Errorf("%d: the session was over before the lease", n)
				}
				return nil
			})
			if !errors.Is(err, ErrLeaseEnding) {
				w.Errorf("ended by %v", err)
			}
		})
	}
}

func TestAGrantBelowTheFloorEndsTheSessionInOrder(t *testing.T) {
	inWorld(t, func(w *world) {
		e := New(func() Config { c := w.config("a"); c.Floor = 3 * time.Second; return c }())
		defer e.Wait()
		err := e.Open(w.Context(), func(ctx context.Context, s *Session) error {
			w.zk.SetBounds(time.Second, 2900*time.Millisecond)
			w.zk.ElectLeader()
			<-ctx.Done()
			if s.Over() != nil {
				w.Error("there is no time left to stop")
			}
			return nil
		})
		if !errors.Is(err, ErrShortened) {
			w.Errorf("ended by %v", err)
		}
		if err := e.Open(w.Context(), func(context.Context, *Session) error { return nil }); !errors.Is(err, ErrShortened) {
			w.Errorf("another one: %v", err)
		}
	})
}

// P3: a server that is asked last may grant the session less, and its answer may be lost. What it grants reaches until after the lease
// as long as it is not less than 7/12 of what the lease counts with.
func TestAGrantThatNobodyReadsOfIsLongEnough(t *testing.T) {
	for _, session := range []time.Duration{MinTimeout, 6 * time.Second, 40 * time.Second} {
		earliest := session * 7 / 12
		if end := LeaseLength(session) + AfterLease(session); end > earliest+time.Microsecond {
			t.Errorf("session %v: the lease may last for %v, and the session for %v", session, end, earliest)
		}
		for _, floor := range []time.Duration{session / 5, session / 3, session} {
			if counted := Counted(session, floor); counted*7/12 > floor || counted > session {
				t.Errorf("session %v, floor %v: it counts with %v", session, floor, counted)
			}
		}
	}
}

// P3: the lock of ours goes with our session, and no lease may grow in another one. https://github.com/ClickHouse/ClickHouse/issues/116690
func TestAnotherSessionAtAReconnectIsTheEndOfOurs(t *testing.T) {
	inWorld(t, func(w *world) {
		e := New(w.config("a"))
		defer e.Wait()
		err := e.Open(w.Context(), func(_ context.Context, s *Session) error {
			w.zk.ForgetSessions(true)
			cut := w.now()
			s.dialer.kick()
			<-s.Ended()
			if took := w.now() - cut; took > time.Second {
				w.Errorf("the lease went on for %v", took)
			}
			return nil
		})
		if !errors.Is(err, ErrExpired) {
			w.Errorf("ended by %v", err)
		}
	})
}

func TestAServerThatForgetsSessionsIsRefused(t *testing.T) {
	inWorld(t, func(w *world) {
		w.zk.ForgetSessions(true)
		e := New(w.config("a"))
		defer e.Wait()
		err := e.Open(w.Context(), func(context.Context, *Session) error {
			w.Error("it is used")
			return nil
		})
		if !errors.Is(err, ErrForgets) || !strings.Contains(err.Error(), "gave another session") {
			w.Errorf("refused by %v", err)
		}
	})
}
