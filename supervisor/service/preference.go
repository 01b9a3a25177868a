package service

import (
	"time"

	"understudy/election"
	"understudy/supervisor/config"
)

// preference is whether this node is preferred to others, or they to it.
type preference struct {
	node     string // this one
	conf     *Conf  // as it is in force
	relapses relapses
	absences relapses // how often a preferred node did not take a free lock: until then, assume that it is gone
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

// How long a node leaves a free lock to one that is preferred to it.
const (
	graceForPreferred = 500 * time.Millisecond
	graceForAny       = 2 * time.Second // to any other node, if an operator wants this one replaced
)

// graceForOthers is how long this node leaves a free lock to others.
func (p *preference) graceForOthers(now time.Time, w election.Intents) time.Duration {
	switch s := w.Control.Switchover; {
	case s != nil && s.To == p.node:
		return 0
	case s != nil && s.From == p.node:
		return graceForAny
	case s != nil && s.To != "":
		return graceForPreferred
	}
	if w.Rival(p.node, p.priority(now)) != "" {
		return graceForPreferred
	}
	return 0
}

// settledIn is how long a preferred node has to be fit before it gets the service.
const settledIn = 2 * time.Second

// preferredBack reports whether a preferred node should get the service, once that node has been fit for so long.
func (p *preference) preferredBack(now time.Time, w election.Intents) (after time.Duration, there bool) {
	if w.Rival(p.node, p.conf.Priority) == "" {
		p.absences.reset() // one that comes back is another try
		return 0, false
	}
	return max(settledIn, p.absences.until.Sub(now)), p.conf.Failback && !w.Control.Paused
}

// longestDemotion is the longest time for which a node is not preferred, unless it backs off for longer anyway.
const longestDemotion = time.Hour

// relapses counts how often a node gives the service up. A preferred node that comes back takes the service away from a healthy one:
// it may do so less and less often, and at last not at all. Meanwhile it stands by as any other.
type relapses struct {
	times int       // in a row
	until time.Time // before that, it is not preferred
}

// gaveUp counts one more. Each time it takes twice as long until the node is preferred again.
func (r *relapses) gaveUp(now time.Time, backOff time.Duration) {
	backOff = max(backOff, time.Second)
	longest := max(backOff, longestDemotion)
	for range r.times {
		backOff = min(2*backOff, longest)
	}
	r.times++
	r.until = now.Add(backOff)
}

// reset forgets them: the service has run well here, or an operator has intervened.
func (r *relapses) reset() { *r = relapses{} }

// demoted reports whether the node is not preferred now. After too many moves it never is.
func (r *relapses) demoted(now time.Time, m config.Moves) *election.Demotion {
	switch {
	case m.Max > 0 && r.times >= m.Max:
		return &election.Demotion{Times: r.times}
	case r.times > 1 && now.Before(r.until): // after the first time, its backoff is enough
		until := r.until.UTC().Truncate(time.Second)
		return &election.Demotion{Times: r.times, Until: &until}
	}
	return nil
}

// growing is a delay that grows with each time in a row that this node has given the service up.
func (v *Service) growing() time.Duration {
	r := v.conf.Restart
	delay := r.Delay
	for range v.mem.preference.relapses.times {
		delay = min(2*delay, r.MaxDelay)
	}
	return delay
}
