package supervisor

import (
	"context"
	"errors"
	"testing"

	"understudy/supervisor/wait"
)

// A preferred node's return, or an operator's order, is told once: whoever misses it waits for ever.
func TestNewsThatComesAsAWaitEndsIsNotLost(t *testing.T) {
	for range 1000 {
		n := newNews()
		err := n.untilStirred(t.Context(), func(context.Context) error {
			wait.Poke(n.stir)
			return nil
		})
		if errors.Is(err, errStirred) {
			continue
		}
		select {
		case <-n.stir:
		default:
			t.Fatal("it is lost")
		}
	}
}

// Two that bear one name would take each other's lock for their own: it is the same session's.
func TestAServiceWaitsForItsNamesakeThatWasRemoved(t *testing.T) {
	first, second, third, other := &service{name: "db"}, &service{name: "db"}, &service{name: "db"}, &service{name: "web"}
	first.removed.Store(true)
	second.removed.Store(true)
	s := &supervisor{services: []*service{other, first, second, third}}
	for v, waits := range map[*service]bool{other: false, first: false, second: true, third: true} {
		if s.waits(v) != waits {
			t.Errorf("%s waits: %v, want %v", v.name, !waits, waits)
		}
	}
}
