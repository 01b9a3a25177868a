package service

import (
	"time"

	"understudy/election"
)

// preference is whether this node is preferred to others, or they to it.
type preference struct {
	node     string // this one
	conf     *Conf  // as it is in force
	relapses relapses
	rivalBy  time.Time // until then, assume that a preferred node is gone: it did not take a free lock
}

// priority is what this node tells the others.
func (p *preference) priority(now time.Time) int {
	if p.demotion(now) != nil {
		return 0
	}
	return p.conf.Priority
}

// demotion is why this node is not preferred, nil when its config does not prefer it.
func (p *preference) demotion(now time.Time) *election.Demotion {
	if p.conf.Priority <= 0 {
		return nil
	}
	return p.relapses.demoted(now, p.conf.Moves)
}

// demotedFor is how long it will take until this node is preferred again; 0: it is, or will not be.
func (p *preference) demotedFor(now time.Time) time.Duration {
	if p.demotion(now) == nil {
		return 0
	}
	return max(0, p.relapses.until.Sub(now))
}

// gaveUp counts that this node has given up the service.
func (p *preference) gaveUp(now time.Time) { p.relapses.gaveUp(now, p.conf.Restart.RejoinAfter) }

// outwaited notes that a preferred node did not take a lock that this node left to it for a while.
func (p *preference) outwaited(now time.Time, session time.Duration) { p.rivalBy = now.Add(session) }

// How long a node leaves a free lock to one that is preferred to it.
const (
	courtesy = 500 * time.Millisecond
	parting  = 2 * time.Second // to any other node, if an operator wants this one replaced
)

// deference is how long this node leaves a free lock to others.
func (p *preference) deference(now time.Time, w election.Intents) time.Duration {
	switch s := w.Control.Switchover; {
	case s != nil && s.To == p.node:
		return 0
	case s != nil && s.From == p.node:
		return parting
	case s != nil && s.To != "":
		return courtesy
	}
	if w.Rival(p.node, p.priority(now)) != "" {
		return courtesy
	}
	return 0
}

// settledIn is how long a preferred node has to be fit before it gets the service.
const settledIn = 2 * time.Second

// rival reports whether a preferred node should get the service, once that node has been fit for so long.
func (p *preference) rival(now time.Time, w election.Intents) (after time.Duration, there bool) {
	if !p.conf.Failback || w.Control.Paused || w.Rival(p.node, p.conf.Priority) == "" {
		return 0, false
	}
	return max(settledIn, p.rivalBy.Sub(now)), true
}
