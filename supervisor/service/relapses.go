package service

import (
	"time"

	"understudy/election"
	"understudy/supervisor/config"
)

// longestDemotion is how long a node is not preferred at most, unless it rests for longer anyway.
const longestDemotion = time.Hour

// relapses is the memory of a service that this node gives up again and again. A preferred node that comes back takes the service
// away from a healthy one: it does so less and less often, and at last not at all. It stands by meanwhile as any other.
type relapses struct {
	times int       // in a row
	until time.Time // before that, it is not preferred
}

// gaveUp counts one more. Each time it takes twice as long until the node is preferred again.
func (r *relapses) gaveUp(now time.Time, rest time.Duration) {
	rest = max(rest, time.Second)
	longest := max(rest, longestDemotion)
	for range r.times {
		rest = min(2*rest, longest)
	}
	r.times++
	r.until = now.Add(rest)
}

// reset forgets them: the service has run well here, or an operator has seen to it.
func (r *relapses) reset() { *r = relapses{} }

// demoted tells whether the node is not preferred now, after so many moves at most.
func (r *relapses) demoted(now time.Time, m config.Moves) *election.Demotion {
	switch {
	case m.Max > 0 && r.times >= m.Max:
		return &election.Demotion{Times: r.times}
	case r.times > 1 && now.Before(r.until): // after the first time, its rest is enough
		until := r.until.UTC().Truncate(time.Second)
		return &election.Demotion{Times: r.times, Until: &until}
	}
	return nil
}
