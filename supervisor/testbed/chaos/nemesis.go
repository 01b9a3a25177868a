package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"understudy/supervisor/testbed/kit/tick"
)

// errViolated ends a run at the first promise that was not kept.
var errViolated = errors.New("violated")

// torment does one burst after another, until the time is over or a promise was not kept. Each is healed, and all has to be
// well before the next. At the end operators end what they have begun.
func (w *world) torment(ctx context.Context, p *plan) error {
	for over := false; !over; {
		pause, strokes := p.burst()
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			strokes = nil
		}
		w.strike(strokes)
		over = ctx.Err() != nil
		if err := w.recover(over); err != nil {
			return err
		}
	}
	return nil
}

// event is something to be done at its time.
type event struct {
	at time.Time
	do func()
}

// strike lets the faults of one burst begin and end.
func (w *world) strike(strokes []stroke) {
	w.record.next()
	began := time.Now()
	var events []event
	for _, s := range strokes {
		at := began.Add(s.after)
		events = append(events, event{at, func() {
			undo := w.begin(s)
			if undo != nil {
				events = append(events, event{at.Add(s.last), undo})
			}
		}})
	}
	for len(events) > 0 {
		slices.SortStableFunc(events, func(a, b event) int { return a.at.Compare(b.at) })
		next := events[0]
		events = events[1:]
		time.Sleep(time.Until(next.at))
		next.do()
	}
}

// begin lets one fault begin, and returns what ends it; nil where there is nothing to end.
func (w *world) begin(s stroke) func() {
	w.mu.Lock()
	defer w.mu.Unlock()
	f := &struck{dice: rand.New(rand.NewPCG(s.dice, 1))}
	f.Kind, f.From = s.kind.name, tick.Now()
	undo := s.kind.strike(w, f)
	if undo == nil {
		return nil // it could not strike now
	}
	f.To = tick.Now()
	if s.kind.longest > 0 {
		f.To = f.From + int64(s.last)
	}
	f.harm(1)
	w.record.tell(f.Fault)
	over := w.record.fault(f.Fault)
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		undo()
		f.harm(-1)
		over()
	}
}

func (s *struck) harm(by int) {
	if s.node != nil {
		s.node.harm += by
	}
	for _, z := range s.hurt {
		z.harm += by
	}
}

// settle is how long all has to be well again after a burst, beyond what progress may take: for the standbys.
const settle = 20 * time.Second

// recover ends all faults, and waits until everything runs. After the last of them it waits for the operators as well.
func (w *world) recover(last bool) error {
	w.heal()
	w.record.healed()
	if err := w.ensemble.serve(); err != nil {
		return err
	}
	missing := w.wait(w.wanting)
	well := tick.Now()
	if missing == "" {
		missing = w.wait(func() string { return w.secrets.unchanged(last) })
	}
	w.fleet.wholeAgain()
	if sewn, err := w.ensemble.sew(); err != nil {
		return err
	} else if sewn && missing == "" {
		missing = w.wait(w.wanting)
	}
	return w.record.well(well, missing)
}

// wait waits until nothing is wanting any more, and tells what is, after too long. What else is wrong ends it.
func (w *world) wait(wanting func() string) string {
	enough := time.NewTimer(bounds.Progress + settle)
	defer enough.Stop()
	again := time.NewTicker(60 * time.Millisecond)
	defer again.Stop()
	for {
		missing := wanting()
		if missing == "" || w.record.violated() {
			return ""
		}
		select {
		case <-again.C:
		case <-enough.C:
			return missing
		}
	}
}
