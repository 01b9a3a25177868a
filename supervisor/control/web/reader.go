package web

import (
	"context"
	"errors"
	"math"
	"sync"
	"time"

	"understudy/supervisor/wait"
)

// reader reads something for many at once: one reading at a time, and what was read is good for a while.
type reader[T any] struct {
	read  func(ctx context.Context, key string) (T, error)
	good  time.Duration
	asked chan struct{} // capacity 1

	mu   sync.Mutex             // guards the fields below
	last map[string]*reading[T] // by key: done
	next map[string]*reading[T] // by key: asked for, and perhaps under way
}

// reading is one act of reading; value and err are there once done is closed.
type reading[T any] struct {
	began time.Time // guarded by the reader's mu; zero: it has not begun
	done  chan struct{}
	value T
	err   error
}

// patience is how long ZooKeeper is waited for.
const patience = 5 * time.Second

func newReader[T any](good time.Duration, read func(context.Context, string) (T, error)) *reader[T] {
	return &reader[T]{
		read: read, good: good, asked: make(chan struct{}, 1), last: map[string]*reading[T]{}, next: map[string]*reading[T]{},
	}
}

// run reads what is asked for until ctx ends.
func (r *reader[T]) run(ctx context.Context) {
	for ctx.Err() == nil {
		select {
		case <-r.asked:
		case <-ctx.Done():
			return
		}
		for key, one := range r.begin() {
			bounded, cancel := context.WithTimeout(ctx, patience)
			one.value, one.err = r.read(bounded, key)
			cancel()
			r.end(key, one)
		}
	}
}

// begin takes all that is asked for.
func (r *reader[T]) begin() map[string]*reading[T] {
	r.mu.Lock()
	defer r.mu.Unlock()
	begun := make(map[string]*reading[T], len(r.next))
	for key, one := range r.next {
		one.began = time.Now()
		begun[key] = one
	}
	for key, one := range r.last {
		if time.Since(one.began) > r.good {
			delete(r.last, key)
		}
	}
	return begun
}

func (r *reader[T]) end(key string, one *reading[T]) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.next, key)
	r.last[key] = one
	close(one.done)
}

// mostAsked is how many different things clients may have waiting to be read.
const mostAsked = 64

var errAsked = errors.New("too many requests at once: nothing is read")

// get gives what was read not longer ago than it is good for, or is being read, or reads. It is for clients, who may ask for
// anything, and go before they are answered: what they leave behind is bounded.
func (r *reader[T]) get(ctx context.Context, key string) (T, error) {
	one := r.find(key, time.Now().Add(-r.good), mostAsked)
	if one == nil {
		var none T
		return none, errAsked
	}
	return one.wait(ctx)
}

// since gives what was read from after a moment on.
func (r *reader[T]) since(ctx context.Context, key string, after time.Time) (T, error) {
	for {
		one := r.find(key, after, math.MaxInt)
		value, err := one.wait(ctx)
		if ctx.Err() != nil || !one.began.Before(after) { // it is done: nobody writes to it any more
			return value, err
		}
	}
}

// find gives the last reading if it began after a moment, else the one that is under way, or a new one: nil when that would be
// one too many.
func (r *reader[T]) find(key string, after time.Time, most int) *reading[T] {
	r.mu.Lock()
	defer r.mu.Unlock()
	if one := r.last[key]; one != nil && !one.began.Before(after) {
		return one
	}
	one := r.next[key]
	if one == nil && len(r.next) >= most {
		return nil
	}
	if one == nil {
		one = &reading[T]{done: make(chan struct{})}
		r.next[key] = one
		wait.Poke(r.asked)
	}
	return one
}

func (t *reading[T]) wait(ctx context.Context) (T, error) {
	select {
	case <-t.done:
		return t.value, t.err
	case <-ctx.Done():
		var none T
		return none, context.Cause(ctx)
	}
}
