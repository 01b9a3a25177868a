package sim

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

// Pair is a role and an event that made it another one.
type Pair struct{ From, Event, To string }

// MarshalText implements encoding.TextMarshaler.
func (p Pair) MarshalText() ([]byte, error) { return []byte(p.From + "|" + p.Event + "|" + p.To), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (p *Pair) UnmarshalText(text []byte) error {
	parts := strings.Split(string(text), "|")
	if len(parts) != 3 {
		return fmt.Errorf("not a transition: %s", text)
	}
	p.From, p.Event, p.To = parts[0], parts[1], parts[2]
	return nil
}

// Coverage counts what the supervisors of a run went through.
type Coverage map[Pair]int

var coverMu sync.Mutex // supervisors log at any time

func (c Coverage) saw(from, event, to string) {
	coverMu.Lock()
	defer coverMu.Unlock()
	c[Pair{from, event, to}]++
}

func (c Coverage) add(other Coverage) {
	for p, n := range other {
		c[p] += n
	}
}

// String lists what was seen, and what was not though it can be.
func (c Coverage) String() string {
	var b strings.Builder
	known := map[Pair]bool{}
	for _, p := range rare {
		known[p] = true
		fmt.Fprintf(&b, "  %-9s + %-26s -> %-9s %8d   rare\n", p.From, p.Event, p.To, c[p])
	}
	for _, p := range reachable {
		known[p] = true
		fmt.Fprintf(&b, "  %-9s + %-26s -> %-9s %8d", p.From, p.Event, p.To, c[p])
		if c[p] == 0 {
			b.WriteString("   UNSEEN")
		}
		b.WriteByte('\n')
	}
	rest := slices.SortedFunc(maps.Keys(c), func(a, b Pair) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	for _, p := range rest {
		if !known[p] {
			fmt.Fprintf(&b, "  %-9s + %-26s -> %-9s %8d   not in the list\n", p.From, p.Event, p.To, c[p])
		}
	}
	return b.String()
}

// Unseen is what can be seen and was not.
func (c Coverage) Unseen() (pairs []Pair) {
	for _, p := range reachable {
		if c[p] == 0 {
			pairs = append(pairs, p)
		}
	}
	return pairs
}
