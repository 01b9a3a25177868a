package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// change is keys that are changed while everything runs, in the steps that docs/security.md states. A fault makes one step, or
// some, or all that are left: what is left is made by later ones, so that other faults meet nodes that are a step apart.
type change struct {
	kind string
	plan func(w *world, dice *rand.Rand) []step

	// world.mu guards the fields below.
	steps []step    // still to be made
	waits string    // what an operator waits for who is at work; "": nobody is
	since time.Time // when he began
}

// step is tried again until nothing is missing.
type step func() (missing string)

const (
	secretChanged      = "agents' secret changed"
	certificateRenewed = "agents' certificates renewed"
	credentialsChanged = "ZooKeeper's credentials changed"
)

func changes() []*change {
	return []*change{
		{kind: secretChanged, plan: changeSecret},
		{kind: certificateRenewed, plan: renewCertificates},
		{kind: credentialsChanged, plan: changeCredentials},
	}
}

func changeKeys(name string) func(*world, *struck) func() {
	return func(w *world, s *struck) func() {
		c := w.secrets.changes[slices.IndexFunc(w.secrets.changes, func(c *change) bool { return c.kind == name })]
		if c.waits != "" {
			return nil
		}
		if len(c.steps) == 0 {
			c.steps = c.plan(w, s.dice)
		}
		number := 1 + s.dice.IntN(6)
		if number = min(number, len(c.steps)); s.dice.IntN(2) == 0 {
			number = len(c.steps)
		}
		s.Target = fmt.Sprintf("%d of %d steps", number, len(c.steps))
		c.waits, c.since = "its first step", time.Now()
		w.tasks.Go(func() { w.secrets.work(c, number, s.dice) })
		return func() {} // an operator ends what he has begun
	}
}

// work is an operator who makes so many steps, and takes his time.
func (se *secrets) work(c *change, number int, dice *rand.Rand) {
	for range number {
		se.mu.Lock()
		do := c.steps[0]
		se.mu.Unlock()
		for {
			missing := do()
			if missing == "" {
				break
			}
			se.mu.Lock()
			c.waits = missing
			se.mu.Unlock()
			if !se.tasks.pause(3 * moment) {
				return
			}
		}
		se.mu.Lock()
		c.steps = c.steps[1:]
		se.mu.Unlock()
		if !se.tasks.pause(between(dice, 0, 6*moment)) {
			return
		}
	}
	se.mu.Lock()
	defer se.mu.Unlock()
	c.waits = ""
}

// patience is for how long an operator may be at work while more faults befall the nodes, before it is waited for him.
const patience = 30 * time.Second

// unchanged says which operator cannot end what he has begun. After the last fault it asks at once, before that only after his patience.
func (se *secrets) unchanged(last bool) string {
	se.mu.Lock()
	defer se.mu.Unlock()
	for _, c := range se.changes {
		if c.waits != "" && (last || time.Since(c.since) > patience) {
			return c.kind + ": " + c.waits
		}
	}
	return ""
}

// round makes a change at one node after the other. Those that are a step apart believe each other, and it is over only when
// the next one may begin.
func (se *secrets) round(dice *rand.Rand, do func(n *node) error) (all []step) {
	for _, s := range everywhere(se.world, dice, do) {
		all = append(all, s, rest(takenUp), se.trust())
	}
	return append(all, rest(settled))
}

// everywhere is a step for each node, in any order.
func everywhere(w *world, dice *rand.Rand, do func(n *node) error) (all []step) {
	for _, i := range dice.Perm(len(w.fleet.nodes)) {
		n := w.fleet.nodes[i]
		all = append(all, once(func() error { return do(n) }))
	}
	return all
}

// once is a step that is made by doing something.
func once(do func() error) step {
	return func() string {
		if err := do(); err != nil {
			return err.Error()
		}
		return ""
	}
}

// What docs/security.md promises to be taken up within a second has been taken up after takenUp. After settled, conversations
// that had begun with what was there before are over, too.
const (
	takenUp = 11 * moment
	settled = 3 * sec
)

// rest waits for so long.
func rest(d time.Duration) step {
	var from time.Time
	return func() string {
		if from.IsZero() {
			from = time.Now()
		}
		if time.Since(from) < d {
			return "a pause"
		}
		return ""
	}
}

// done is the step after which other keys are the good ones.
func (se *secrets) done(note func(k *keys)) step {
	return func() string {
		se.mu.Lock()
		defer se.mu.Unlock()
		note(&se.keys)
		return ""
	}
}
