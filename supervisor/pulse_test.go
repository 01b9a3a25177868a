package supervisor

import (
	"context"
	"testing"
	"testing/synctest"
)

// pulsing is a supervisor of which only takeChanges runs.
func pulsing(t *testing.T) (*supervisor, func() (answered bool)) {
	pulses, guarded := make(chan chan<- struct{}), make(chan struct{})
	close(guarded)
	s := &supervisor{cfg: Config{Pulse: pulses, Observer: unobserved{}}, guarded: guarded, pulse: pulse{beat: make(chan struct{})}}
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	go s.takeChanges(ctx)
	return s, func() bool {
		alive := make(chan struct{}, 1)
		synctest.Wait()
		select {
		case pulses <- alive:
		default:
			return false
		}
		synctest.Wait()
		return len(alive) == 1
	}
}

func TestPulseIsAnsweredWithoutASession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, pulse := pulsing(t)
		for range 2 {
			if !pulse() {
				t.Error("no answer")
			}
		}
	})
}

func TestPulseIsAnsweredWhileTheLoopOfTheSessionTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, pulse := pulsing(t)
		stop := s.pulse.turning()
		go func() { <-s.pulse.beat; <-s.pulse.beat }()
		for i, want := range []bool{true, true, false, false} { // it takes two, then it hangs
			if got := pulse(); got != want {
				t.Errorf("pulse %d: answered %v", i, got)
			}
		}
		stop()
		if !pulse() {
			t.Error("no answer once that loop has ended")
		}
	})
}
