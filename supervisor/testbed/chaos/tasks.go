package main

import (
	"context"
	"sync"
	"time"
)

// tasks is what goes on beside the faults: operators and strangers. They end when the run does.
type tasks struct {
	sync.WaitGroup
	over chan struct{}
	once sync.Once
}

// end waits for all.
func (t *tasks) end() {
	t.once.Do(func() { close(t.over) })
	t.Wait()
}

// pause tells whether the run still goes on.
func (t *tasks) pause(d time.Duration) bool {
	enough := time.NewTimer(d)
	defer enough.Stop()
	select {
	case <-enough.C:
		return true
	case <-t.over:
		return false
	}
}

// within asks what may take long, as ZooKeeper without a quorum does, and waits for a while only.
func within[T any](limit time.Duration, ask func() (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	got := make(chan answer, 1)
	go func() {
		v, err := ask()
		got <- answer{v, err}
	}()
	enough := time.NewTimer(limit)
	defer enough.Stop()
	select {
	case a := <-got:
		return a.value, a.err
	case <-enough.C:
		var none T
		return none, context.DeadlineExceeded
	}
}
