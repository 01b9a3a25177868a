package control

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Notice is what people are told at once.
type Notice struct {
	ID      string    `json:"id"` // the same if it is sent again, because its sender may have died before
	Time    time.Time `json:"time"`
	Cluster string    `json:"cluster"` // zookeeper.root
	Text    string    `json:"text"`    // a line for each event
	Events  []Event   `json:"events"`
}

// Event is what has happened to a service.
type Event struct {
	Service    string        `json:"service"`
	Event      string        `json:"event"` // takeover, or how the service is now: ok, alone, unhealthy or down
	Node       string        `json:"node"`  // the active one; empty: none is
	Text       string        `json:"text"`
	Activation *HistoryEntry `json:"activation,omitempty"` // of a takeover: the one that began
	Ended      *HistoryEntry `json:"ended,omitempty"`      // and the one before it
}

// mostEvents bounds a notice: it has to fit into a znode, and into the environment of a command.
const mostEvents = 50

func noticeOf(events []Event, cluster string, now time.Time) *Notice {
	slices.SortStableFunc(events, func(a, b Event) int { return cmp.Compare(a.Event, b.Event) })
	left := events[min(len(events), mostEvents):]
	events = events[:len(events)-len(left)]
	var text strings.Builder
	for _, e := range events {
		fmt.Fprintln(&text, e.Text)
	}
	if len(left) > 0 {
		fmt.Fprintf(&text, "and of %d more services\n", len(left))
	}
	return &Notice{ID: rand.Text(), Time: now.UTC(), Cluster: cluster, Text: text.String(), Events: events}
}

// told is the newest that people know of a service.
type told struct {
	Token   int64  `json:"token"` // of the activation
	Verdict string `json:"verdict"`
}

// settles is for how long a service has to be so before people are told: a switchover, or a restart of a supervisor, is nobody's trouble.
func settles(v Verdict) time.Duration {
	if v == Alone {
		return 30 * time.Second
	}
	return 10 * time.Second
}

// sight is since when a service is as it is.
type sight struct {
	verdict Verdict
	since   time.Time
}

// changed is the verdict on a service if people have not been told of it, and it has settled.
func (n *Notifier) changed(v ServiceStatus, was told, now time.Time) (e Event, yes bool) {
	verdict, words := v.Judge()
	seen, known := n.seen[v.Service]
	if !known || seen.verdict != verdict {
		seen = sight{verdict, now}
		n.seen[v.Service] = seen
	}
	if verdict == Held || verdict == Done || verdict.String() == was.Verdict || now.Sub(seen.since) < settles(verdict) {
		return e, false
	}
	return Event{Service: v.Service, Event: verdict.String(), Node: v.Active, Text: v.Service + ": " + words}, true
}

// takeover is the newest activation if people have not been told of it. over:
// there is nothing more to wait for; it is ready. yes: nobody had ordered it.
func (c *Cluster) takeover(ctx context.Context, v ServiceStatus, was told) (e Event, yes, over bool, err error) {
	entries, err := activations(ctx, c.znodes, v.Service)
	if err != nil {
		return e, false, false, err
	}
	var ended *HistoryEntry
	for i := range entries {
		switch a := &entries[i]; {
		case a.Token >= v.Token:
			if a.Token > v.Token || a.Ready == nil {
				return e, false, false, nil
			}
			if ended == nil || !yes {
				return e, false, true, nil
			}
			text := fmt.Sprintf("%s: %s has taken over from %s (%s), nothing ran for %s",
				v.Service, a.Node, ended.Node, cmp.Or(string(ended.Reason), "no word of its end"), a.gap())
			return Event{Service: v.Service, Event: "takeover", Node: a.Node, Text: text, Activation: a, Ended: ended}, true, true, nil
		case a.Token >= was.Token:
			yes = yes || !a.Reason.Planned()
			if ended == nil || a.Ready != nil {
				ended = a
			}
		}
	}
	return e, false, false, nil // it is not written down yet
}

// gap is how long nothing ran before, in words.
func (a *HistoryEntry) gap() string {
	in := func(ms *int64) string { return (time.Duration(*ms) * time.Millisecond).String() }
	switch {
	case a.GapMs != nil:
		return in(a.GapMs)
	case a.GapMinMs != nil && a.GapMaxMs != nil:
		return in(a.GapMinMs) + " to " + in(a.GapMaxMs)
	case a.GapMinMs != nil:
		return "more than " + in(a.GapMinMs)
	case a.GapMaxMs != nil:
		return "less than " + in(a.GapMaxMs)
	}
	return "an unknown time"
}
