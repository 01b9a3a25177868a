package main

import (
	"math/rand/v2"
	"slices"
	"time"
)

// stroke is one fault as it was drawn. Who it befalls is decided by its dice when it strikes, among those who then are
// active, standing by, or leading.
type stroke struct {
	kind  *kind
	after time.Duration // from the beginning of the burst
	last  time.Duration // until it is undone
	dice  uint64
}

// plan draws bursts of faults. It follows from the seed alone.
type plan struct {
	rng   *rand.Rand
	kinds []*kind
	deck  []*kind
	last  time.Duration // of every fault, unless zero
}

func newPlan(seed uint64, kinds []*kind) *plan {
	return &plan{rng: rand.New(rand.NewPCG(seed, 0)), kinds: kinds}
}

// card deals kinds from a shuffled deck, so that each has its turn before any comes again.
func (p *plan) card() *kind {
	if len(p.deck) == 0 {
		p.deck = slices.Clone(p.kinds)
		p.rng.Shuffle(len(p.deck), func(i, j int) { p.deck[i], p.deck[j] = p.deck[j], p.deck[i] })
	}
	card := p.deck[0]
	p.deck = p.deck[1:]
	return card
}

// spread is how far apart the faults of a burst begin, at most.
const spread = 2500 * time.Millisecond

// burst draws one fault, or several that overlap, and how long to wait before.
func (p *plan) burst() (pause time.Duration, all []stroke) {
	number := 1
	switch roll := p.rng.IntN(100); {
	case roll < 8:
		number = 4
	case roll < 22:
		number = 3
	case roll < 48:
		number = 2
	}
	for i := range number {
		s := stroke{kind: p.card(), dice: p.rng.Uint64()}
		s.last = between(p.rng, s.kind.shortest, s.kind.longest)
		if p.last > 0 {
			s.last = p.last
		}
		if i > 0 {
			s.after = between(p.rng, 0, spread)
		}
		all = append(all, s)
	}
	return between(p.rng, 50*time.Millisecond, 800*time.Millisecond), all
}

// between prefers neither short nor long: half of what it draws is below the geometric mean.
func between(rng *rand.Rand, shortest, longest time.Duration) time.Duration {
	if longest <= shortest {
		return shortest
	}
	d := rng.Float64()
	return shortest + time.Duration(d*d*float64(longest-shortest))
}
