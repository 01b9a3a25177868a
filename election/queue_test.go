package election

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"understudy/election/jute"
)

func TestQueueServesInOrder(t *testing.T) {
	inWorld(t, func(w *world) {
		var order []string
		var waits []func() error
		for i := range 5 {
			waits = append(waits, w.open(fmt.Sprint("n", i), func(ctx context.Context, s *Session) error {
				_, cl, err := claim(ctx, s, Queue)
				if err != nil {
					return err
				}
				order = append(order, s.cfg.Node.Node)
				time.Sleep(2 * time.Second)
				return cl.Release(ctx)
			}))
			time.Sleep(100 * time.Millisecond)
		}
		for _, wait := range waits {
			if err := wait(); err != nil {
				w.Error(err)
			}
		}
		if got := fmt.Sprint(order); got != "[n0 n1 n2 n3 n4]" {
			w.Errorf("order %v", got)
		}
	})
}

// requestsOf counts the requests, heartbeats left out, that a failover among n candidates costs.
func requestsOf(t *testing.T, order Order, n int) (count int64) {
	inWorld(t, func(w *world) {
		stop, goOn := make(chan struct{}), make(chan struct{})
		active := make(chan struct{}, n)
		var waits []func() error
		for i := range n {
			waits = append(waits, w.open(fmt.Sprint("n", i), func(ctx context.Context, s *Session) error {
				ctx, cancel := context.WithCancelCause(ctx)
				go func() { <-stop; cancel(errStop) }()
				_, cl, err := claim(ctx, s, order)
				if errors.Is(err, errStop) {
					return nil
				}
				if err != nil {
					return err
				}
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
			if err := wait(); err != nil {
				w.Error(err)
			}
		}
	})
	return count
}

var errStop = errors.New("stop")

func (w *world) counted() (sum int64) {
	for op, n := range w.zk.Requests() {
		if op != jute.OpSetData && op != jute.OpPing {
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
			w.zk.CloseAfter(zkmemCreateIn("queue"))
			c, cl, err := claim(ctx, s, Queue)
			if err != nil {
				return err
			}
			places, err := s.children(ctx, c.Paths().Queue())
			if len(places) != 1 || err != nil {
				w.Errorf("places: %v %v", places, err)
			}
			return cl.Release(ctx)
		})
	})
}
