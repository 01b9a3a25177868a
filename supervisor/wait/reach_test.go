package wait

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestAFileSystemThatDoesNotAnswerIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r Reach
		answers := make(chan int)
		late := make(chan int, 1)
		ask := func(ctx context.Context) (int, error) {
			return Reached(ctx, &r, func() (int, error) { return <-answers, nil }, func(v int) { late <- v })
		}
		began := time.Now()
		if _, err := ask(t.Context()); !errors.Is(err, ErrNoAnswer) || time.Since(began) != reachPatience {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		answers <- 7
		if got := <-late; got != 7 {
			t.Errorf("what came late is %d", got)
		}
		stop := errors.New("stop")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(stop) })
		if _, err := ask(ctx); !errors.Is(err, stop) {
			t.Errorf("stopped: %v", err)
		}
		go func() { answers <- 0 }()
		<-late
		go func() { answers <- 8 }()
		if v, err := ask(t.Context()); v != 8 || err != nil {
			t.Errorf("%d, %v", v, err)
		}
		synctest.Wait() // until none of those before counts any more
		for range mostHung {
			if _, err := ask(ctx); !errors.Is(err, stop) {
				t.Errorf("stopped: %v", err)
			}
		}
		began = time.Now()
		if _, err := ask(t.Context()); !errors.Is(err, ErrNoAnswer) || time.Since(began) != 0 {
			t.Errorf("with many that hang: %v after %v", err, time.Since(began))
		}
		close(answers)
		for range mostHung {
			<-late
		}
	})
}
