package service

import (
	"testing"
	"time"

	"understudy/supervisor/config"
)

func TestARelapseTakesTwiceAsLongAsTheOneBefore(t *testing.T) {
	now, rest := time.Unix(0, 0), time.Minute
	var r relapses
	for i, want := range []time.Duration{0, 2, 4, 8, 16, 32, 60, 60} {
		r.gaveUp(now, rest)
		d := r.demoted(now, config.Moves{})
		switch {
		case want == 0 && d != nil: // its rest is enough
			t.Fatalf("time %d: %v", i+1, d)
		case want == 0:
		case d == nil || d.Times != i+1 || !d.Until.Equal(now.Add(want*time.Minute)):
			t.Fatalf("time %d: %v, want %d minutes", i+1, d, want)
		case r.demoted(d.Until.Add(time.Second), config.Moves{}) != nil:
			t.Fatalf("time %d: it does not end", i+1)
		}
	}
	r.reset()
	if d := r.demoted(now, config.Moves{Max: 1}); d != nil {
		t.Errorf("after a reset: %v", d)
	}
}

func TestRelapsesAreBoundedByTheMovesThatAreAllowed(t *testing.T) {
	now := time.Unix(0, 0)
	var r relapses
	for i := range 3 {
		r.gaveUp(now, time.Minute)
		d := r.demoted(now.Add(24*time.Hour), config.Moves{Max: 3})
		if good := i == 2; good != (d != nil) || good && d.Until != nil {
			t.Errorf("time %d: %v", i+1, d)
		}
	}
}

func TestARestOfAnyLengthIsNotShortened(t *testing.T) {
	var r relapses
	now := time.Unix(0, 0)
	for range 70 {
		r.gaveUp(now, 2*time.Hour)
	}
	if want := now.Add(2 * time.Hour); !r.until.Equal(want) {
		t.Errorf("until %v, want %v", r.until, want)
	}
}
