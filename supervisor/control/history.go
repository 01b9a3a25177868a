package control

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"understudy/election"
)

// HistoryEntry is one entry of the history. All times are those of the clock of the node that wrote them.
type HistoryEntry struct {
	Service string     `json:"service"`
	Node    string     `json:"node"`
	Token   int64      `json:"token"`
	Start   time.Time  `json:"start"`   // when it took the lock
	Started *time.Time `json:"started"` // when its programs were started
	Ready   *time.Time `json:"ready"`   // when they were ready for the first time; nil: never, or that is not known
	End     *time.Time `json:"end"`     // nil: it goes on, or nobody knows when it ended
	// EndMin and EndMax are set if the node did not write the end itself: its last process died between them.
	EndMin *time.Time `json:"end_min,omitempty"`
	EndMax *time.Time `json:"end_max,omitempty"`
	Active bool       `json:"active"` // it goes on

	// From ready to the end, or up to now; 0: it was never ready.
	RanMs    *int64 `json:"ran_ms"`
	RanMinMs *int64 `json:"ran_min_ms,omitempty"`
	RanMaxMs *int64 `json:"ran_max_ms,omitempty"`
	Restarts int    `json:"restarts,omitempty"` // in place: how often it was ready again
	DownMs   int64  `json:"down_ms,omitempty"`  // how much of RanMs it was down, for these restarts or before it ended
	// From the death of the previous program's last process until this one was ready, as far as clocks agree. It is either GapMs or, where
	// nobody wrote the end down, bounded by the other two.
	GapMs    *int64 `json:"gap_ms"`
	GapMinMs *int64 `json:"gap_min_ms,omitempty"`
	GapMaxMs *int64 `json:"gap_max_ms,omitempty"`
	ReadyMs  *int64 `json:"ready_ms"`          // from the start of the programs: the last part of the gap
	HookMs   *int64 `json:"hook_ms,omitempty"` // how much of ReadyMs on_active took
	// OverlapMs is how long both ran, after an operator had confirmed the previous one's death wrongly.
	OverlapMs *int64 `json:"overlap_ms,omitempty"`

	Reason  election.Reason `json:"reason"`         // why it ended
	Exit    string          `json:"exit,omitempty"` // of what was to run once
	Fenced  election.Proof  `json:"fenced"`         // how the previous active was known to be dead
	FenceMs int64           `json:"fence_ms"`       // how long that took; until then nothing ran
}

// History reads the activations of the services named, or of all, newest first.
func (c *Cluster) History(ctx context.Context, names ...string) ([]HistoryEntry, error) {
	names, err := c.Services(ctx, names...)
	if err != nil {
		return nil, err
	}
	found := make([][]HistoryEntry, len(names))
	err = all(len(names), func(i int) (err error) {
		found[i], err = activations(ctx, c.znodes, names[i])
		return err
	})
	if err != nil {
		return nil, err
	}
	entries := append([]HistoryEntry{}, slices.Concat(found...)...)
	slices.SortStableFunc(entries, func(a, b HistoryEntry) int {
		return cmp.Or(b.Start.Compare(a.Start), cmp.Compare(b.Token, a.Token))
	})
	return entries, nil
}

func activations(ctx context.Context, z znodes, service string) ([]HistoryEntry, error) {
	p := election.Paths{Root: z.root, Service: service}
	written, err := list(ctx, z, p.History(), func(_ string, n znode) election.Activation { return parseActivation(n.data) })
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(written, func(a, b election.Activation) int { return cmp.Compare(a.Token, b.Token) }) // an entry may come late
	lock, err := z.read(ctx, p.Lock())
	if err != nil {
		return nil, err
	}
	return chain(service, written, lock, time.Now()), nil
}

// parseActivation takes what it understands of an entry.
func parseActivation(data []byte) election.Activation {
	var a election.Activation
	_ = json.Unmarshal(data, &a)
	return a
}

// chain derives from entries in their order what each has to do with the previous one.
func chain(service string, written []election.Activation, lock znode, now time.Time) []HistoryEntry {
	all := make([]HistoryEntry, len(written))
	ran := -1 // the last one whose programs ran
	for i, w := range written {
		a := HistoryEntry{
			Service: service, Node: w.Node, Token: w.Token, Start: w.Start, Started: w.Started, Ready: w.Ready, End: w.End,
			EndMin: w.EndMin, EndMax: w.EndMax, Reason: w.Reason, Fenced: w.Fenced, FenceMs: max(w.FenceMs, 0), Restarts: w.Restarts,
			DownMs: w.DownMs, Exit: w.Exit, Active: w.End == nil && lock.exists && tokenOf(lock) == w.Token,
		}
		if w.End != nil && w.EndMin == nil && w.EndMax == nil && i+1 < len(written) && w.End.Equal(written[i+1].Start) {
			a.End = nil // the next activation wrote its own start: the end is not known
		}
		ready := a.Ready
		if a.Started != nil && a.Ready != nil {
			a.ReadyMs = millis(a.Ready.Sub(*a.Started))
			if w.HookMs > 0 {
				a.HookMs = &w.HookMs
			}
		}
		if ready != nil && ran >= 0 {
			a.since(&all[ran], *ready)
		}
		switch {
		case ready == nil:
			a.RanMs = millis(0)
		case a.Active:
			a.RanMs = millis(now.Sub(*ready))
		default:
			a.RanMs, a.RanMinMs, a.RanMaxMs = a.ends().apart(func(end time.Time) time.Duration { return end.Sub(*ready) })
		}
		all[i] = a
		if ready != nil {
			ran = i
		}
	}
	for i, w := range written {
		all[i].End = w.End
	}
	return all
}

// since measures what lies between the previous activation that ran and this one.
func (a *HistoryEntry) since(previous *HistoryEntry, ready time.Time) {
	started := ready
	if a.Started != nil {
		started = *a.Started
	}
	end := previous.ends()
	switch {
	case a.Fenced.Confirmed() && previous.End != nil && previous.End.After(started):
		a.OverlapMs = millis(previous.End.Sub(started))
		previous.EndMin, previous.EndMax = nil, nil // it ran on without heartbeats
		previous.RanMs, previous.RanMinMs, previous.RanMaxMs = millis(previous.End.Sub(*previous.Ready)), nil, nil
		return
	case a.Fenced.Fenced() && end.exact() && end.min.After(started): // its node proved the death later than this one
		end = span{max: &started}
	}
	// The earlier the end, the longer the gap.
	a.GapMs, a.GapMaxMs, a.GapMinMs = end.apart(ready.Sub)
}

// ends is when the programs ran last.
func (a *HistoryEntry) ends() span {
	if a.EndMin != nil || a.EndMax != nil {
		return span{a.EndMin, a.EndMax}
	}
	return span{a.End, a.End}
}

// span is a point in time of which bounds are known. nil: not even that.
type span struct{ min, max *time.Time }

func (s span) exact() bool { return s.min != nil && s.max != nil && s.min.Equal(*s.max) }

// apart returns how far the point is from another one, by what measures that, or what its bounds are.
func (s span) apart(measure func(time.Time) time.Duration) (exact, atMin, atMax *int64) {
	if s.exact() {
		return millis(measure(*s.min)), nil, nil
	}
	if s.min != nil {
		atMin = millis(measure(*s.min))
	}
	if s.max != nil {
		atMax = millis(measure(*s.max))
	}
	return nil, atMin, atMax
}

// millis is never negative: clocks of two hosts may disagree.
func millis(d time.Duration) *int64 {
	ms := max(d, 0).Milliseconds()
	return &ms
}
