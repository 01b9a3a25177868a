package web

import (
	"sync"
	"time"
)

// What wrong tokens are allowed: so many at once, and so many a second from then on.
const (
	guessesOfOne   = 10
	guessesOfAll   = 100
	refillOfOne    = 1.0
	refillOfAll    = 10.0
	mostRecognized = 1024
)

// guesses slows down clients that show wrong tokens: each address for itself, and all together, so that many addresses do not
// help. An address that has shown a right token is not held up by others.
type guesses struct {
	mu     sync.Mutex // guards the fields below
	all    spent
	of     map[string]*spent    // by address; as few as all together may be wrong, and those that are recognized
	friend map[string]time.Time // addresses that have shown a right token, and when
}

// spent is how many guesses were made, less those that time has given back.
type spent struct {
	n  float64
	at time.Time
}

func (s *spent) now(now time.Time, refill float64) float64 {
	if s == nil {
		return 0
	}
	s.n, s.at = max(0, s.n-refill*now.Sub(s.at).Seconds()), now
	return s.n
}

// verdict is what became of a token that was shown.
type verdict int

const (
	wrong verdict = iota
	right
	tooMany // it was not looked at
)

// judge looks at a token, unless its address has to wait.
func (g *guesses) judge(from string, now time.Time, fits func() bool) verdict {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.may(from, now) {
		return tooMany
	}
	if fits() {
		g.recognize(from, now)
		return right
	}
	g.tidy(now)
	one := g.of[from]
	if one == nil {
		one = &spent{at: now}
		g.of[from] = one
	}
	one.n++
	g.all.n = min(g.all.n+1, guessesOfAll)
	return wrong
}

// waits tells whether an address has to wait before another token of it is looked at.
func (g *guesses) waits(from string, now time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return !g.may(from, now)
}

func (g *guesses) may(from string, now time.Time) bool {
	if g.of == nil {
		g.of, g.friend = map[string]*spent{}, map[string]time.Time{}
	}
	_, friend := g.friend[from]
	all := g.all.now(now, refillOfAll)
	return g.of[from].now(now, refillOfOne) <= guessesOfOne-1 && (friend || all <= guessesOfAll-1)
}

// recognize remembers an address; of too many the one that was here longest ago is forgotten.
func (g *guesses) recognize(from string, now time.Time) {
	g.friend[from] = now
	if len(g.friend) <= mostRecognized {
		return
	}
	oldest := from
	for address, at := range g.friend {
		if at.Before(g.friend[oldest]) {
			oldest = address
		}
	}
	delete(g.friend, oldest)
}

// tidy forgets those whose guesses time has given back.
func (g *guesses) tidy(now time.Time) {
	for address, s := range g.of {
		if s.now(now, refillOfOne) == 0 {
			delete(g.of, address)
		}
	}
}
