package election

import (
	"context"
	"errors"
	"testing"
	"time"

	"understudy/supervisor/testbed/must"
)

// endedAt is an ending that is known.
func endedAt(t time.Time) Ending { return Ending{Min: utc(t), Max: utc(t)} }

// ending has b claim after a, which was active and vanished, and returns how a's entry in the history bounds its last sign of life.
// close, if any, runs first, with what a's guardians know.
func (w *world) ending(left func(Ticket, Release)) (a Activation) {
	w.Helper()
	gone := errors.New("gone")
	var ticket Ticket
	var release Release
	vanished, done := make(chan struct{}), make(chan struct{})
	dead := w.open("a", func(ctx context.Context, s *Session) error {
		cand, cl := claimed(ctx, s, Race)
		try(cl.Inscribe(ctx))
		if _, _, err := cand.History.Record(ctx, Activation{Token: cl.Token, Start: time.Now()}, "", Ending{}); err != nil {
			return err
		}
		time.Sleep(10 * time.Second)
		ticket, release = s.Ticket(), cl.paths.Release()
		close(vanished)
		return gone
	})
	time.Sleep(time.Second)
	b := w.open("b", func(ctx context.Context, s *Session) error {
		go func() {
			<-vanished
			left(ticket, release)
			close(done)
		}()
		cand, cl := claimed(ctx, s, Race)
		previous := cl.Previous
		if previous != nil {
			if _, err := cl.Delay(ctx, 0); err != nil {
				return err
			}
		}
		try(cl.Inscribe(ctx))
		next := Activation{Token: cl.Token, Start: time.Now().UTC()}
		if previous != nil {
			next.Fenced = "grace"
		}
		_, lost, err := cand.History.Record(ctx, next, "lost", cl.PreviousEnding(previous))
		try(err)
		if lost == nil || lost.Node != "a" || lost.End == nil {
			w.Errorf("nobody handed over, and it is not known: %+v", lost)
		}
		past, err := cand.History.Past(ctx, 2)
		if err != nil || len(past) != 2 {
			w.Fatalf("%v, %v", past, err)
		}
		a = past[0]
		return cl.Release(ctx)
	})
	if err := dead(); !errors.Is(err, gone) {
		w.Fatal(err)
	}
	must.OK(w, b())
	<-done
	return a
}

// Whoever has seen the last heartbeat knows when that was, and takes the lock when the lease that rests on it is over: so
// the entry is bounded, and not by more.
func TestAnEndThatNobodyWroteIsBoundedByTheLastHeartbeat(t *testing.T) {
	inWorld(t, func(w *world) {
		var died time.Time
		a := w.ending(func(Ticket, Release) { died = time.Now() })
		last := died.Add(-beatEvery(testLease)) // at the earliest
		switch {
		case a.EndMin == nil || a.EndMax == nil:
			t.Fatalf("no bounds: %+v", a)
		case a.EndMin.After(died) || a.EndMax.Before(last.Add(testLease)):
			t.Errorf("it died at %v, its program when the lease was over, and the bounds are %v and %v", died, a.EndMin, a.EndMax)
		case a.EndMax.Sub(*a.EndMin) > testTimeout+time.Second/10:
			t.Errorf("the bounds are wide: %v", a.EndMax.Sub(*a.EndMin))
		case a.Reason != "lost" || a.End == nil:
			t.Errorf("%+v", a)
		}
	})
}

// Who stood in a queue has seen no lock since the one before the previous active's, or none at all; and a proof by an agent is newer than the lease.
func TestWhatWasSeenOfAnotherLockBoundsNothing(t *testing.T) {
	inWorld(t, func(w *world) {
		w.leave("a")
		w.within("b", func(ctx context.Context, s *Session) error {
			_, cl := claimed(ctx, s, Race)
			seen, started := cl.lockEnd, time.Now()
			for _, left := range []lockEnd{{gone: started.Add(-20 * time.Second)}, {token: 3, gone: started.Add(-20 * time.Second)}} {
				cl.lockEnd = left
				for _, by := range []Proof{"grace", "agent"} {
					end := cl.PreviousEnding(cl.Previous).beside(Activation{Token: cl.PreviousToken}, Activation{Started: &started, Fenced: by})
					if end.Max == nil || !end.Max.Equal(started) || end.Min != nil {
						t.Errorf("%+v, %s: %v to %v", left, by, end.Min, end.Max)
					}
				}
				end := cl.PreviousEnding(nil).beside(Activation{Token: cl.PreviousToken}, Activation{Started: &started, Fenced: NoBreadcrumb})
				if end.Max != nil || end.Min != nil {
					t.Errorf("%+v: dead before %v, though an operator may have deleted its record", left, end.Max)
				}
			}
			cl.lockEnd = seen
			if end := cl.PreviousEnding(cl.Previous).beside(Activation{Token: cl.PreviousToken}, Activation{Started: &started, Fenced: "agent, after ssh failed"}); !end.Max.Equal(started) {
				t.Errorf("its agent has killed it by %v, not %v", started, end.Max)
			}
			try(cl.Inscribe(ctx))
			return cl.Release(ctx)
		})
	})
}

// Guardians give the lock back once effects are undone, and say when the programs died.
func TestTheEndThatGuardiansKnowIsWrittenDown(t *testing.T) {
	inWorld(t, func(w *world) {
		var died time.Time
		a := w.ending(func(ticket Ticket, release Release) {
			died = time.Now()
			time.Sleep(time.Second / 10)
			must.Report(w, ticket.Close(w.Context(), w.dial, []Release{release}, endedAt(died), true))
		})
		if a.End == nil || a.EndMin == nil || !a.EndMin.Equal(*a.EndMax) || !a.End.Equal(*a.EndMin) || !a.End.Equal(died) {
			t.Errorf("it died at %v: %+v", died, a)
		}
	})
}

// A new leader changes nothing of when the last heartbeat was.
func TestTheEarliestEndIsKnownAfterAReconnect(t *testing.T) {
	inWorld(t, func(w *world) {
		var died time.Time
		a := w.ending(func(Ticket, Release) {
			died = time.Now()
			time.Sleep(time.Second)
			w.zk.ElectLeader()
		})
		if a.EndMin == nil || a.EndMin.After(died) || a.EndMax == nil {
			t.Errorf("it died at %v: %+v", died, a)
		}
	})
}

// While a service is paused nobody waits for the lock, but how it went is to be known.
func TestTheEndDuringAPauseIsBounded(t *testing.T) {
	inWorld(t, func(w *world) {
		w.leave("a")
		w.within("b", func(ctx context.Context, s *Session) error {
			cand := stand(ctx, s, Race)
			paused, resume := context.WithTimeout(ctx, time.Minute)
			defer resume()
			began := time.Now()
			if err := cand.WatchLock(paused); !errors.Is(err, context.DeadlineExceeded) {
				return err
			}
			o, err := cand.Wait(ctx)
			try(err)
			cl, err := cand.Take(ctx, o, BreadCrumb{Tree: []byte(`{}`)})
			try(err)
			if end := cl.PreviousEnding(cl.Previous); end.Max == nil || end.Max.After(began.Add(testTimeout+2*time.Second+time.Second)) {
				t.Errorf("%v after the pause began: %v", time.Since(began), end.Max)
			}
			try(cl.Inscribe(ctx))
			return cl.Release(ctx)
		})
	})
}

// An activation too short for an entry leaves bounds that are of no other one.
func TestBoundsOfOneActivationAreNotAnothersEnd(t *testing.T) {
	now := time.Now()
	end := Ending{Min: utc(now.Add(-time.Second)), Max: utc(now), of: 7}
	next := Activation{Fenced: "grace"}
	if got := end.beside(Activation{Token: 7}, next); got.Min == nil || got.Max == nil {
		t.Errorf("of its own: %+v", got)
	}
	if got := end.beside(Activation{Token: 5}, next); got.Min != nil || got.Max != nil {
		t.Errorf("of another one: %+v", got)
	}
}
