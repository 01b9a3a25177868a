package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"understudy/supervisor/testbed/chaos/history"
	"understudy/supervisor/testbed/kit"
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
		w.mu.Lock()
		over = ctx.Err() != nil
		w.over = over
		w.mu.Unlock()
		if err := w.recover(); err != nil {
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
	w.mu.Lock()
	w.record.past.Bursts = append(w.record.past.Bursts, history.Burst{})
	w.record.burst = &w.record.past.Bursts[len(w.record.past.Bursts)-1]
	w.mu.Unlock()
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
	i := len(w.record.burst.Faults)
	w.record.burst.Faults = append(w.record.burst.Faults, f.Fault)
	f.harm(1)
	w.record.tell(f.Fault)
	w.record.mark()
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		undo()
		f.harm(-1)
		w.record.burst.Faults[i].To = tick.Now()
		w.record.mark()
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

// recover ends all faults, and waits until everything runs.
func (w *world) recover() error {
	w.heal()
	w.mu.Lock()
	w.record.burst.Healed = tick.Now()
	w.mu.Unlock()
	if err := w.ensemble.serve(); err != nil {
		return err
	}
	missing := w.wait(w.wanting)
	well := tick.Now()
	if missing == "" {
		missing = w.wait(w.secrets.unchanged)
	}
	w.wholeAgain()
	if sewn, err := w.ensemble.sew(); err != nil {
		return err
	} else if sewn && missing == "" {
		missing = w.wait(w.wanting)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.record.burst.Well = well
	if missing != "" {
		w.record.wrong = append(w.record.wrong, history.Violation{What: "stuck", At: w.record.burst.Healed, Text: "still wanting: " + missing})
	}
	h, err := w.record.judged(false)
	if err != nil {
		return err
	}
	w.record.tellHealed(h)
	if bad := append(h.Check(), w.record.wrong...); len(bad) > 0 {
		return errViolated
	}
	w.record.burst = nil
	return nil
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

// violated tells whether a promise is known not to have been kept.
func (rc *record) violated() bool {
	rc.mu.Lock()
	defer rc.mu.Unlock()
	return len(rc.wrong) > 0
}

// serve waits until all servers serve again. How long they take for that is no matter of Understudy's.
func (en *ensemble) serve() error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	for {
		if err := en.stage.ZK.WaitReady(ctx); err != nil {
			return err
		}
		if en.writable(wedged) {
			break
		}
		en.say("%s    ZooKeeper has a leader and takes no writes: its servers are restarted", en.record.clock(tick.Now()))
		for i := range en.servers {
			if err := en.stage.ZK.Restart(i); err != nil {
				return err
			}
		}
		en.mu.Lock()
		en.record.past.Wedged++
		en.mu.Unlock()
	}
	en.mu.Lock()
	defer en.mu.Unlock()
	en.serving = true
	en.record.mark()
	return nil
}

// wedged is how long an ensemble whose network is whole may take no writes, before an operator would restart it. ZooKeeper
// 3.8.0 does that for ever now and then, when its leader was not heard for about as long as its followers wait.
const wedged = 20 * time.Second

// writable tells whether ZooKeeper acknowledges a write within a limit.
func (en *ensemble) writable(limit time.Duration) bool {
	end := time.After(limit)
	for {
		acked := make(chan error, 1)
		go func() {
			_, err := en.look.Conn().Set("/", nil, -1)
			acked <- err
		}()
		select {
		case err := <-acked:
			if err == nil {
				return true
			}
			time.Sleep(20 * time.Millisecond) // the client has no connection
		case <-end:
			return false
		}
	}
}

// judged is the history up to now, to be judged.
func (rc *record) judged(whole bool) (*history.History, error) {
	h := rc.past
	h.Lives = slices.Clone(h.Lives) // they go on
	h.Ended = tick.Now()
	err := rc.book.fill(&h, whole)
	return &h, err
}

// member asks ZooKeeper, for a moment.
func (w *world) member(service, name string) (kit.Node, bool) {
	m, err := within(2*time.Second, func() (kit.Node, error) {
		m, ok := w.look.Member(service, name)
		if !ok {
			return m, errors.New("there is none")
		}
		return m, nil
	})
	return m, err == nil
}

// clock is a moment as minutes and seconds from the beginning.
func (rc *record) clock(at int64) string {
	d := time.Duration(at - rc.past.Began)
	return fmt.Sprintf("%3d:%04.1f", int(d.Minutes()), (d % time.Minute).Seconds())
}

func (rc *record) tell(f history.Fault) {
	last := ""
	if d := time.Duration(f.To - f.From); d > moment {
		last = fmt.Sprintf("%4.1f s", d.Seconds())
	}
	rc.say("%s  %-36s %-22s %s", rc.clock(f.From), f.Kind, f.Target, last)
}

func (rc *record) tellHealed(h *history.History) {
	var gaps []string
	began := rc.burst.Healed
	for _, f := range rc.burst.Faults {
		began = min(began, f.From)
	}
	longest := time.Duration(0)
	for _, g := range h.Gaps() {
		if g.From > began-int64(moment) {
			gaps = append(gaps, g.Service)
			longest = max(longest, time.Duration(g.To-g.From))
		}
	}
	slices.Sort(gaps)
	gaps = slices.Compact(gaps)
	text := "nothing stopped"
	if len(gaps) > 0 {
		text = fmt.Sprintf("%d of %d stopped, %.2f s at most", len(gaps), len(h.Services), longest.Seconds())
	}
	healing := time.Duration(rc.burst.Well - rc.burst.Healed)
	rc.say("%s    well again after %.1f s; %s", rc.clock(rc.burst.Well), healing.Seconds(), text)
}

// say prints a line of 80 columns at most.
func (w *world) say(format string, args ...any) {
	line := strings.TrimRight(fmt.Sprintf(format, args...), " ")
	if len(line) > 80 {
		line = line[:79] + "~"
	}
	fmt.Println(line)
}
