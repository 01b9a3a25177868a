package election

import (
	"context"
	"testing"
	"time"

	"understudy/election/jute"
	"understudy/supervisor/testbed/zkfaults"
)

// What a previous session left unsaid is said in its entry, and in no other's that took its name after a loss of data.
func TestAnEntryIsCorrectedOnlyIfItIsTheSameActivation(t *testing.T) {
	inWorld(t, func(w *world) {
		w.within("a", func(ctx context.Context, s *Session) error {
			c := stand(ctx, s, Race)
			end := time.Now().UTC()
			entry, _, err := c.History.Record(ctx, Activation{Token: 7, Start: end}, "", Ending{})
			try(err)
			for _, token := range []int64{8, 7} {
				try(c.History.Correct(ctx, entry, Activation{Token: token, Start: end, End: &end, Reason: "session expired"}))
				v, err := s.getW(ctx, entry)
				try(err)
				if a, err := decode[Activation](v.data); err != nil || a.Token != 7 || (a.Reason != "") != (token == 7) {
					w.Errorf("after a correction for %d: %+v, %v", token, a, err)
				}
			}
			if err := c.History.Correct(ctx, entry+"9", Activation{Token: 7}); err != nil {
				w.Errorf("an entry that is dropped: %v", err)
			}
			return nil
		})
	})
}

// Requests that are not answered say nothing of changes by others: the first such change is still taken for chance.
func TestAChangeAfterManyUnansweredRequestsIsTakenForChance(t *testing.T) {
	inWorld(t, func(w *world) {
		w.within("a", func(ctx context.Context, s *Session) error {
			c := stand(ctx, s, Race)
			entry, _, err := c.History.Record(ctx, Activation{Token: 7, Start: time.Now().UTC()}, "", Ending{})
			try(err)
			w.zk.CloseBefore(zkfaults.Match{Op: jute.OpSetData, Path: entry, Count: mostChanges + 2})
			w.zk.Refuse(zkfaults.Match{Op: jute.OpSetData, Path: entry}, jute.BadVersion)
			return c.History.Correct(ctx, entry, Activation{Token: 7, Reason: "session expired"})
		})
	})
}

// inHistory does something with the history of a service.
func inHistory(t *testing.T, do func(ctx context.Context, w *world, h *History) error) {
	t.Helper()
	inWorld(t, func(w *world) {
		w.within("a", func(ctx context.Context, s *Session) error {
			c := stand(ctx, s, Race)
			return do(ctx, w, c.History)
		})
	})
}

// A node that slept proves a death late, and keeps what the next one wrote if that had a proof. Else both may have run.
func TestALateEndIsWrittenOnlyIfNobodyProvedIt(t *testing.T) {
	for fenced, want := range map[Proof]Reason{"agent": "lost", "grace": "lost", ConfirmedBy("root"): "lock lost", NoBreadcrumb: "lock lost"} {
		inHistory(t, func(ctx context.Context, w *world, h *History) error {
			start := time.Now().UTC()
			began, late := start.Add(time.Minute), start.Add(2*time.Minute)
			entry, _, err := h.Record(ctx, Activation{Token: 7, Start: start}, "", Ending{})
			if err != nil {
				return err
			}
			if _, _, err := h.Record(ctx, Activation{Token: 8, Start: began, Started: &began, Fenced: fenced}, "lost", Ending{}); err != nil {
				return err
			}
			for i, end := range []time.Time{late, start} { // the second is no late one
				if err := h.Correct(ctx, entry, Activation{Token: 7, Start: start, End: &end, Reason: "lock lost"}); err != nil {
					return err
				}
				past, err := h.Past(ctx, 2)
				if err != nil {
					return err
				}
				written := i > 0 || want == "lock lost"
				if got := past[0]; (got.Reason == "lock lost") != written || got.End.Equal(end) != written {
					w.Errorf("%s: %+v", fenced, got)
				}
			}
			return nil
		})
	}
}

// The late end may be there before the next activation is.
func TestALateEndThatCameFirstIsReplacedIfAnotherProvedIt(t *testing.T) {
	for fenced, want := range map[Proof]Reason{"agent": "lost", "grace": "lost", ConfirmedBy("root"): "lock lost", NoBreadcrumb: "lock lost"} {
		inHistory(t, func(ctx context.Context, w *world, h *History) error {
			start := time.Now().UTC()
			began, late := start.Add(time.Minute), start.Add(2*time.Minute)
			if _, _, err := h.Record(ctx, Activation{Token: 7, Start: start, End: &late, Reason: "lock lost"}, "", Ending{}); err != nil {
				return err
			}
			if _, _, err := h.Record(ctx, Activation{Token: 8, Start: began, Started: &began, Fenced: fenced}, "lost", Ending{}); err != nil {
				return err
			}
			past, err := h.Past(ctx, 2)
			if err != nil {
				return err
			}
			if got := past[0]; got.Reason != want || got.End.After(began) != (want == "lock lost") {
				w.Errorf("%s: %+v", fenced, got)
			}
			return nil
		})
	}
}

// The late end may also come while the next activation is about to write what it proved.
func TestALateEndThatComesAtTheSameTimeIsReplaced(t *testing.T) {
	inHistory(t, func(ctx context.Context, w *world, h *History) error {
		start := time.Now().UTC()
		began := start.Add(time.Minute)
		entry, _, err := h.Record(ctx, Activation{Token: 7, Start: start}, "", Ending{})
		if err != nil {
			return err
		}
		w.zk.Refuse(zkfaults.Match{Op: jute.OpSetData, Path: entry}, jute.BadVersion)
		_, lost, err := h.Record(ctx, Activation{Token: 8, Start: began, Started: &began, Fenced: "agent"}, "lost", Ending{})
		if err != nil {
			return err
		}
		past, err := h.Past(ctx, 2)
		if err != nil {
			return err
		}
		if got := past[0]; got.Reason != "lost" || got.End == nil || lost == nil {
			w.Errorf("%+v", got)
		}
		return nil
	})
}

// The entry of a short term, whose supervisor slept before it had written it, comes after those of the next ones. It ends none of them,
// but the one before it, unless that is known to have ended earlier.
func TestALateEntryEndsNoLaterActivation(t *testing.T) {
	now := time.Now().UTC()
	at := func(seconds float64) time.Time { return now.Add(time.Duration(seconds * float64(time.Second))) }
	for _, known := range []Ending{{}, endedAt(at(7.5))} { // to 9
		inHistory(t, func(ctx context.Context, w *world, h *History) error {
			for _, token := range []int64{7, 9, 8} {
				a, end := Activation{Token: token, Start: at(float64(token))}, Ending{}
				switch token {
				case 8:
					a.End = &now
				case 9:
					end = known
				}
				if _, _, err := h.Record(ctx, a, "lost", end); err != nil {
					return err
				}
			}
			past, err := h.Past(ctx, 3)
			if err != nil {
				return err
			}
			if len(past) != 3 || past[0].Reason != "lost" || past[1].Token != 8 || past[2].Token != 9 || past[2].End != nil {
				w.Errorf("%+v", past)
			}
			want := at(8) // where 9, which did not know of 8, had said 9
			if known.known() {
				want = *known.Max
			}
			if end := past[0].End; end == nil || !end.Equal(want) {
				w.Errorf("7 ended at %v, not at %v", end, want)
			}
			return nil
		})
	}
}
