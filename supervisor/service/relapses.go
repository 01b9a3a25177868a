package service

import (
	"time"

	"understudy/election"
	"understudy/supervisor/config"
)

// longestDemotion is the longest time for which a node is not preferred, unless it backs off for longer anyway.
const longestDemotion = time.Hour

// relapses counts how often this node gives the service up. A preferred node that comes back takes the service away from a healthy one:
// it may do so less and less often, and at last not at all. Meanwhile it stands by as any other.
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
