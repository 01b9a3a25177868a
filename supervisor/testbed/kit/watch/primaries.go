package watch

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"
)

// Primaries asks all copies what they are, all the time. Two primaries at once are two that answer so between two such answers of each
// other.
type Primaries struct {
	mu    sync.Mutex // guards what follows
	calm  bool       // an operator has made a second one
	asked int
	since time.Time // of two that are there now; zero: they are not
	long  time.Duration
	times int
	first string
}

// NewPrimaries asks until the test ends. An asker keeps a connection over which it asks whether a copy is the primary.
func NewPrimaries(tb testing.TB, asker func(addr string) func() bool, addrs ...string) *Primaries {
	tb.Helper()
	m := &Primaries{}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		asks := map[string]func() bool{}
		for _, addr := range addrs {
			asks[addr] = asker(addr)
		}
		every := time.NewTicker(10 * time.Millisecond)
		defer every.Stop()
		for ctx.Err() == nil {
			m.round(asks, addrs)
			<-every.C
		}
	}()
	tb.Cleanup(func() { cancel(); <-done })
	return m
}

func (m *Primaries) round(asks map[string]func() bool, addrs []string) {
	m.mu.Lock()
	calm := m.calm // what was asked then may be told after that is over
	m.mu.Unlock()
	began := time.Now()
	first, second := map[string]bool{}, map[string]bool{}
	for _, round := range []map[string]bool{first, second} {
		for _, addr := range addrs {
			round[addr] = asks[addr]()
		}
	}
	var both []string
	for i, addr := range addrs {
		for _, other := range addrs[i+1:] {
			if first[addr] && first[other] && second[addr] { // the other one answered in between
				both = append(both, addr+" and "+other)
			}
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked++
	if len(both) == 0 || calm || m.calm {
		m.since = time.Time{}
		return
	}
	if m.since.IsZero() {
		m.since = began
	}
	if m.times++; m.times == 1 {
		m.first = fmt.Sprint(began.Format("15:04:05.000"), both)
	}
	m.long = max(m.long, time.Since(m.since))
}

// Allow has two be primaries, or not any more.
func (m *Primaries) Allow(yes bool) {
	m.mu.Lock()
	m.calm = yes
	m.mu.Unlock()
}

// Seen is how often two were there, and when first, in so many rounds.
func (m *Primaries) Seen() (times int, first string, rounds int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.times, m.first, m.asked
}

// Longest is the longest time in which two were there, without a break, since it was last asked for.
func (m *Primaries) Longest() (long time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	long, m.long = m.long, 0
	return long
}
