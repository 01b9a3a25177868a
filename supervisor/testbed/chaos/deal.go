package main

import (
	"math/rand/v2"
	"time"
)

// stroke is one fault as it was dealt, and, once it struck, its victim. Its dice choose the victim among those who are active,
// stand by or lead at that moment.
type stroke struct {
	*fault
	after, last time.Duration // since the beginning of the burst, and from then until it is undone
	dice        *rand.Rand
	at          int64  // when it struck, on CLOCK_MONOTONIC
	target      string // for the report
}

// dealer deals bursts of faults from a shuffled deck, so that each kind has its turn before the next deck. What it deals follows
// from the seed alone.
type dealer struct {
	dice        *rand.Rand
	kinds, deck []*fault
	last        time.Duration // of every fault, unless zero
}

func newDealer(seed uint64, kinds []*fault, last time.Duration) *dealer {
	return &dealer{dice: rand.New(rand.NewPCG(seed, 0)), kinds: kinds, last: last}
}

func (d *dealer) card() *fault {
	if len(d.deck) == 0 {
		for _, f := range d.kinds {
			for range f.weight {
				d.deck = append(d.deck, f)
			}
		}
		d.dice.Shuffle(len(d.deck), func(i, j int) { d.deck[i], d.deck[j] = d.deck[j], d.deck[i] })
	}
	card := d.deck[0]
	d.deck = d.deck[1:]
	return card
}

// sizes is how many faults a burst has, each as often as the others; spread is how far apart they begin, at most.
var sizes = []int{1, 1, 1, 1, 2, 2, 3, 4}

const spread = 2500 * time.Millisecond

// burst deals some faults that overlap, and the pause before them.
func (d *dealer) burst() (pause time.Duration, all []*stroke) {
	for i := range sizes[d.dice.IntN(len(sizes))] {
		s := &stroke{fault: d.card(), dice: rand.New(rand.NewPCG(d.dice.Uint64(), 1))}
		if s.last = d.last; s.last == 0 {
			s.last = between(d.dice, s.least, s.most)
		}
		if i > 0 {
			s.after = between(d.dice, 0, spread)
		}
		all = append(all, s)
	}
	return between(d.dice, moment/2, 8*moment), all
}

// between prefers what is short.
func between(dice *rand.Rand, shortest, longest time.Duration) time.Duration {
	f := dice.Float64()
	return shortest + time.Duration(f*f*float64(longest-shortest))
}
