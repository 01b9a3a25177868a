package supervisor

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"
)

// walker is a service that moves when its test says so.
type walker struct {
	moves    int64
	patience time.Duration
}

func (*walker) Name() string                         { return "web" }
func (w *walker) Step() (about any, d time.Duration) { return w.moves, w.patience }

// watched returns how long it took until a service was found to stand still, with the machine's clock in now; 0: not within ten minutes.
func watched(t *testing.T, w *walker, now func()) (took time.Duration) {
	ctx, enough := context.WithTimeout(t.Context(), 10*time.Minute)
	defer enough()
	began := time.Now()
	watchSteps(ctx, func() time.Duration { return 8 * time.Second }, func() time.Duration { now(); return 0 }, func() []decider { return []decider{w} },
		func(service string, stood time.Duration) {
			if took = time.Since(began); service != "web" || stood <= 8*time.Second || stood > took {
				t.Errorf("%s stood for %v after %v", service, stood, took)
			}
		})
	return took
}

// P6: its lock would be kept, and nobody would decide.
func TestAServiceThatStandsStillIsNoticed(t *testing.T) {
	for name, c := range map[string]struct {
		of       walker
		from, to time.Duration
	}{
		"at work":                   {walker{moves: 3}, 8 * time.Second, 13 * time.Second},
		"beyond the end of a wait":  {walker{moves: 3, patience: time.Minute}, 68 * time.Second, 73 * time.Second},
		"in a wait that may be any": {walker{moves: 3, patience: math.MaxInt64}, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if took := watched(t, &c.of, func() {}); took < c.from || took > c.to {
					t.Errorf("after %v", took)
				}
			})
		})
	}
}

func TestAServiceThatMovesDoesNotStandStill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w walker
		if took := watched(t, &w, func() {
			if time.Now().Second()%8 == 0 {
				w.moves++
			}
		}); took > 0 {
			t.Errorf("after %v", took)
		}
	})
}

// A process that was stopped, or whose machine was paused, goes on as if nothing had been.
func TestAFreezeOfTheProcessIsNoStandstill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w walker
		n := 0
		if took := watched(t, &w, func() {
			time.Sleep(time.Minute)
			if n++; n%4 == 0 {
				w.moves++
			}
		}); took > 0 {
			t.Errorf("after %v", took)
		}
	})
}
