package supervisor

import (
	"context"
	"testing"
	"time"

	"understudy/election"
	"understudy/supervisor/child"
)

// deadlines is a guard that remembers the last deadline that it was told.
type deadlines struct {
	Guard
	last time.Duration
}

func (d *deadlines) Extend(_ uint64, at time.Duration) error { d.last = at; return nil }

func (d *deadlines) Shorten(_ context.Context, _ uint64, at time.Duration, _ child.Watchdog) error {
	d.last = at
	return nil
}

// P3: what was acknowledged under a longer timeout, and reaches the guardians after the shorter deadline, changes nothing.
func TestAnExtensionFromBeforeAShorterGrantIsNotTold(t *testing.T) {
	guard := &deadlines{}
	h := (&supervisor{guard: guard, cfg: Config{Machine: clock{}}}).newHold(&election.Session{}, 1) // its lease ends at 0
	h.told = time.Second
	if err := h.shorten(t.Context()); err != nil || guard.last != 1 || h.told != 1 { // over, and not: none has begun
		t.Fatalf("told %v: %v", guard.last, err)
	}
	if err := h.extend(time.Second); err != nil || guard.last > 1 {
		t.Errorf("told %v: %v", guard.last, err)
	}
}

// P1: a deadline by promises stands as far as the promises do for all that runs, whatever ZooKeeper grants.
func TestAShorterGrantEndsNoMoreThanItHasTo(t *testing.T) {
	h := (&supervisor{guard: &deadlines{}, cfg: Config{Machine: clock{}}}).newHold(&election.Session{}, 1)
	h.held, h.told = true, 2*time.Hour
	if end := h.limit(); end != 2*time.Hour {
		t.Errorf("with nothing that needs a promise it ends at %v", end)
	}
	h.runs[&service{name: "db"}] = newCover(nil)
	if end := h.limit(); end != 0 {
		t.Errorf("with a service that nothing is promised about it ends at %v", end)
	}
}
