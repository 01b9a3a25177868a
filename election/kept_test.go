package election

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"understudy/supervisor/testbed/must"
)

// P6: a lock that another client keeps alive is taken like any other, once its node's beat is over.
func TestALockOfAKeptSessionIsTaken(t *testing.T) {
	inWorld(t, func(w *world) {
		ticket, _, left := w.leaveAt("a")
		defer w.zk.Keep(ticket.Session)()
		w.claims("b", func(ctx context.Context, s *Session, b *Claim) error {
			if took := time.Since(left); took > OverAfter(testLease)+testTimeout { // the library closes a connection late
				w.Errorf("the lock was claimed after %v", took)
			}
			if b.Previous == nil || b.Previous.Node != "a" {
				w.Fatalf("the breadcrumb names %+v", b.Previous)
			}
			return b.Release(ctx)
		})
	})
}

// P6: so are its place in the queue, and the name of its node.
func TestWhatElseAKeptSessionHasBlocksNobody(t *testing.T) {
	inWorld(t, func(w *world) {
		gone := errors.New("gone")
		var ticket Ticket
		err := w.open("a", func(ctx context.Context, s *Session) error {
			c := stand(ctx, s, Queue)
			if ahead, err := c.queue.predecessor(ctx); ahead != "" || err != nil {
				return fmt.Errorf("it is not the first: %s, %w", ahead, err)
			}
			ticket = s.Ticket()
			return gone
		})()
		if !errors.Is(err, gone) {
			w.Fatal(err)
		}
		defer w.zk.Keep(ticket.Session)()
		for _, node := range []string{"b", "a"} {
			began := w.now()
			w.within(node, func(ctx context.Context, s *Session) error {
				_, c := claimed(ctx, s, Queue)
				if took := w.now() - began; took > 2*OverAfter(testLease) {
					w.Errorf("%s has the lock after %v", node, took)
				}
				return c.Release(ctx)
			})
		}
	})
}

// A node that comes back with its lease over need not see that: it knows.
func TestANodeTakesItsNameBackFromItsOwnSessionAtOnce(t *testing.T) {
	inWorld(t, func(w *world) {
		e, gone := New(w.config("a")), errors.New("gone")
		defer e.Wait()
		var first int64
		err := e.Open(w.Context(), func(_ context.Context, s *Session) error {
			first = s.ID()
			return gone
		})
		if !errors.Is(err, gone) {
			w.Fatal(err)
		}
		defer w.zk.Keep(first)()
		began := w.now()
		err = e.Open(w.Context(), func(_ context.Context, s *Session) error {
			if took := w.now() - began; s.ID() == first || took > time.Second {
				w.Errorf("it has its name after %v", took)
			}
			return nil
		})
		must.Report(w, err)
	})
}
