package election

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"understudy/election/jute"
	"understudy/supervisor/testbed/must"
)

func TestQueueServesInOrder(t *testing.T) {
	inWorld(t, func(w *world) {
		var order []string
		var waits []func() error
		for i := range 5 {
			waits = append(waits, w.open(fmt.Sprint("n", i), func(ctx context.Context, s *Session) error {
				_, cl := claimed(ctx, s, Queue)
				order = append(order, s.cfg.Node.Node)
				time.Sleep(2 * time.Second)
				return cl.Release(ctx)
			}))
			time.Sleep(100 * time.Millisecond)
		}
		for _, wait := range waits {
			must.Report(w, wait())
		}
		if got := fmt.Sprint(order); got != "[n0 n1 n2 n3 n4]" {
			w.Errorf("order %v", got)
		}
	})
}

// requestsOf counts the requests, without heartbeats and looks at those of others, that a failover among n candidates costs.
func requestsOf(t *testing.T, mode Mode, n int) (count int64) {
	inWorld(t, func(w *world) {
		stop, goOn := make(chan struct{}), make(chan struct{})
		active := make(chan struct{}, n)
		var waits []func() error
		for i := range n {
			waits = append(waits, w.open(fmt.Sprint("n", i), func(ctx context.Context, s *Session) error {
				ctx, cancel := context.WithCancelCause(ctx)
				go func() { <-stop; cancel(errStop) }()
				_, cl, err := claim(ctx, s, mode)
				if errors.Is(err, errStop) {
					return nil
				}
				try(err)
				active <- struct{}{}
				select {
				case <-goOn:
				case <-ctx.Done():
				}
				return cl.Release(context.WithoutCancel(ctx))
			}))
			time.Sleep(50 * time.Millisecond)
		}
		<-active
		time.Sleep(time.Second)
		before := w.counted()
		goOn <- struct{}{}
		<-active
		time.Sleep(time.Second)
		count = w.counted() - before
		close(stop)
		for _, wait := range waits {
			must.Report(w, wait())
		}
	})
	return count
}

var errStop = errors.New("stop")

func (w *world) counted() (sum int64) {
	for op, n := range w.zk.Requests() {
		if op != jute.OpSetData && op != jute.OpGetData && op != jute.OpPing {
			sum += n
		}
	}
	return sum
}

func TestFailoverInTheQueueCostsTheSameForAnyNumberOfStandbys(t *testing.T) {
	few, many := requestsOf(t, Queue, 3), requestsOf(t, Queue, 21)
	if few != many {
		t.Errorf("2 standbys: %d requests, 20 standbys: %d", few, many)
	}
	race := requestsOf(t, Race, 21)
	if race < 3*many {
		t.Errorf("race with 20 standbys costs %d, queue %d: the comparison shows nothing", race, many)
	}
	t.Logf("requests of a failover: queue %d and %d, race with 20 standbys %d", few, many, race)
}

func TestPlaceInTheQueueIsFoundAgainWhenItsCreationWasNotAnswered(t *testing.T) {
	inWorld(t, func(w *world) {
		w.within("a", func(ctx context.Context, s *Session) error {
			w.zk.CloseAfter(createIn("queue"))
			c, cl := claimed(ctx, s, Queue)
			places, err := s.children(ctx, c.Paths().Queue())
			if len(places) != 1 || err != nil {
				w.Errorf("places: %v %v", places, err)
			}
			return cl.Release(ctx)
		})
	})
}

func TestPlacesAreInTheOrderOfPriorityAndThenOfTime(t *testing.T) {
	got := inOrder([]string{"a-n_0000000003", "b-p5-n_0000000009", "c-p10-n_0000000010", "d-n_0000000001", "junk", "e-p10-n_0000000007", "-p9"})
	want := []string{"e-p10-n_0000000007", "c-p10-n_0000000010", "b-p5-n_0000000009", "d-n_0000000001", "a-n_0000000003"}
	if !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
}

// Whoever has come ahead waits for the lock; its owner, who does not know that it is, must not wait for them.
func TestALockThatMayBeOursIsLookedAtOutOfTurn(t *testing.T) {
	inWorld(t, func(w *world) {
		w.within("plain", func(ctx context.Context, s *Session) error {
			c, err := w.unanswered(ctx, s, Queue)
			try(err)
			ahead := w.open("preferred", func(ctx context.Context, s *Session) error {
				c, _, err := s.NewCandidate(ctx, "svc", Queue)
				if err == nil {
					err = c.Prefer(ctx, 1)
				}
				if err == nil {
					_, err = c.Wait(ctx)
				}
				return err
			})
			time.Sleep(time.Second) // it is first in the queue now
			bounded, cancel := context.WithTimeout(ctx, time.Minute)
			defer cancel()
			var o Opening
			for range 2 { // whoever is told may be called away, and ask again
				if o, err = c.Wait(bounded); err != nil || !o.Ours() {
					return fmt.Errorf("ours: %v, %w", o.Ours(), err)
				}
			}
			cl, err := c.Take(ctx, o, BreadCrumb{Tree: []byte(`{}`)})
			if err != nil || c.MayHoldLock() {
				return fmt.Errorf("unsure: %v, %w", c.MayHoldLock(), err)
			}
			return errors.Join(cl.Release(ctx), ahead())
		})
	})
}

// What a candidate of another session had is not taken over: its place is gone, and its name is not ours.
func TestACandidateInheritsNothingOfAnotherSession(t *testing.T) {
	inWorld(t, func(w *world) {
		var carried CarriedCandidate
		for range 2 {
			w.within("a", func(ctx context.Context, s *Session) error {
				c := stand(ctx, s, Queue)
				c.Inherit(carried)
				if _, err := c.Wait(ctx); err != nil {
					return err
				}
				if carried = c.Carry(); "0x"+carried.GUID != SessionName(s.ID()) || carried.Session != s.ID() {
					return fmt.Errorf("in session %s it stands as %+v", SessionName(s.ID()), carried)
				}
				return nil
			})
		}
	})
}

// A candidate that did not take its place back leaves it to the next one of its session, which would wait behind it for ever.
func TestACandidateTakesOverThePlaceOfTheOneBefore(t *testing.T) {
	inWorld(t, func(w *world) {
		w.within("a", func(ctx context.Context, s *Session) error {
			for range 2 {
				c := stand(ctx, s, Queue)
				bounded, cancel := context.WithTimeout(ctx, time.Second)
				_, err := c.Wait(bounded)
				cancel()
				if err != nil {
					return fmt.Errorf("it waits: %w", err)
				}
			}
			return nil
		})
	})
}

// A place that is gone is not watched: it never comes back, and its watch would stay with the server as long as the session.
func TestAPlaceThatIsGoneIsNotWatched(t *testing.T) {
	inWorld(t, func(w *world) {
		w.within("a", func(ctx context.Context, s *Session) error {
			c := stand(ctx, s, Queue)
			if _, err := c.Wait(ctx); err != nil {
				return err
			}
			there, err := s.getWIfThere(ctx, c.queue.place)
			try(err)
			gone, err := s.getWIfThere(ctx, c.paths.Queue()+"/77-n_0000000077")
			if !there.exists || there.changed == nil || gone.exists || gone.changed != nil {
				w.Errorf("its own place: %+v, one that is gone: %+v", there, gone)
			}
			return err
		})
	})
}
