package control

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"understudy/election"
)

// Activation is one entry of the history. All times are those of the node's own clock.
type Activation struct {
	Service string          `json:"service"`
	Node    string          `json:"node"`
	Token   int64           `json:"token"`
	Start   time.Time       `json:"start"`
	End     *time.Time      `json:"end"`      // nil: it goes on, or nobody knows when it ended
	Active  bool            `json:"active"`   // it goes on
	RanMs   *int64          `json:"ran_ms"`   // up to now when it goes on
	GapMs   *int64          `json:"gap_ms"`   // since the end of the former one, as far as clocks agree
	Reason  election.Reason `json:"reason"`   // why it ended
	Fenced  election.Proof  `json:"fenced"`   // how the former active was known to be dead
	FenceMs int64           `json:"fence_ms"` // how long that took; until then nothing ran
}

// History reads the activations of the services named, or of all, newest first.
func (c *Cluster) History(ctx context.Context, names ...string) ([]Activation, error) {
	names, err := c.Services(ctx, names...)
	if err != nil {
		return nil, err
	}
	found := make([][]Activation, len(names))
	err = all(len(names), func(i int) (err error) {
		found[i], err = activations(ctx, c.znodes, names[i])
		return err
	})
	if err != nil {
		return nil, err
	}
	entries := append([]Activation{}, slices.Concat(found...)...)
	slices.SortStableFunc(entries, func(a, b Activation) int {
		return cmp.Or(b.Start.Compare(a.Start), cmp.Compare(b.Token, a.Token))
	})
	return entries, nil
}

func activations(ctx context.Context, z znodes, service string) ([]Activation, error) {
	p := election.Paths{Root: z.root, Service: service}
	written, err := list(ctx, z, p.History(), func(_ string, n znode) election.Activation { return parseActivation(n.data) })
	if err != nil {
		return nil, err
	}
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

// chain derives from entries in their order what each has to do with the former one.
func chain(service string, written []election.Activation, lock znode, now time.Time) []Activation {
	all := make([]Activation, len(written))
	for i, w := range written {
		a := Activation{
			Service: service, Node: w.Node, Token: w.Token, Start: w.Start, End: w.End, Reason: w.Reason, Fenced: w.Fenced, FenceMs: max(w.FenceMs, 0),
			Active: w.End == nil && lock.exists && lock.stat.Czxid == w.Token,
		}
		switch {
		case w.End != nil:
			a.RanMs = millis(w.End.Sub(w.Start))
		case a.Active:
			a.RanMs = millis(now.Sub(w.Start))
		}
		// An end that the next activation wrote, with its own start, is not known.
		if i > 0 && written[i-1].End != nil && !written[i-1].End.Equal(w.Start) {
			a.GapMs = millis(w.Start.Sub(*written[i-1].End))
		}
		all[i] = a
	}
	return all
}

// millis is never negative: clocks of two hosts may disagree.
func millis(d time.Duration) *int64 {
	ms := max(d, 0).Milliseconds()
	return &ms
}
