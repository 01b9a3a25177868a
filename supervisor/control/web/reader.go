package web

import (
	"context"
	"time"
)

// reader reads something for many at once: one reading at a time, and what was read is good for a while.
type reader[T any] struct {
	read    func(ctx context.Context, key string) (T, error)
	good    time.Duration
	queries chan query[T] // without a buffer: who goes before it is taken leaves nothing behind
}

// query asks for a reading that fits.
type query[T any] struct {
	key    string
	fits   func(reading[T]) bool
	answer chan<- reading[T] // with room for it
}

// reading is one act of reading.
type reading[T any] struct {
	began, ended time.Time
	value        T
	err          error
}

// patience is how long ZooKeeper is waited for.
const patience = 5 * time.Second

func newReader[T any](good time.Duration, read func(context.Context, string) (T, error)) *reader[T] {
	return &reader[T]{read: read, good: good, queries: make(chan query[T])}
}

// run reads what is asked for until ctx ends.
func (r *reader[T]) run(ctx context.Context) {
	last := map[string]reading[T]{}
	for {
		select {
		case q := <-r.queries:
			if one, known := last[q.key]; known && q.fits(one) {
				q.answer <- one
				continue
			}
			for key, one := range last {
				if time.Since(one.ended) > r.good {
					delete(last, key)
				}
			}
			one := reading[T]{began: time.Now()}
			bounded, cancel := context.WithTimeout(ctx, patience)
			one.value, one.err = r.read(bounded, q.key)
			cancel()
			one.ended = time.Now()
			last[q.key] = one
			q.answer <- one
		case <-ctx.Done():
			return
		}
	}
}

// get gives what was read not longer ago than it is good for, or reads.
func (r *reader[T]) get(ctx context.Context, key string) (T, error) {
	after := time.Now().Add(-r.good)
	return r.ask(ctx, key, func(one reading[T]) bool { return one.ended.After(after) })
}

// since gives what was read from after a moment on.
func (r *reader[T]) since(ctx context.Context, key string, after time.Time) (T, error) {
	return r.ask(ctx, key, func(one reading[T]) bool { return !one.began.Before(after) })
}

func (r *reader[T]) ask(ctx context.Context, key string, fits func(reading[T]) bool) (T, error) {
	answer := make(chan reading[T], 1)
	var one reading[T]
	select {
	case r.queries <- query[T]{key, fits, answer}:
	case <-ctx.Done():
		return one.value, context.Cause(ctx)
	}
	select {
	case one = <-answer:
		return one.value, one.err
	case <-ctx.Done():
		return one.value, context.Cause(ctx)
	}
}
