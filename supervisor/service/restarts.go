package service

import (
	"fmt"
	"strconv"
	"time"

	"understudy/supervisor/config"
)

// startTries is how often this node tries a program that cannot even be started: a longer wait rarely makes it appear, and
// another node may have it.
const startTries = 2

// restarts remembers a service's failures on this node.
type restarts struct {
	cfg      config.Restart
	failures []time.Time
	delay    time.Duration
}

// verdict is the decision after the child's end.
type verdict struct {
	again  bool
	after  time.Duration
	why    string
	failed string // which failure it is: "3 of 5"; empty: it is none
}

// reset forgets all failures: an operator has intervened.
func (r *restarts) reset() { r.failures, r.delay = nil, 0 }

// slow does not count the time of a start that failed: otherwise a program that never gets ready would never fail often enough
// within the limit.
func (r *restarts) slow(took time.Duration) {
	for i := range r.failures {
		r.failures[i] = r.failures[i].Add(took)
	}
}

// ended decides after an end. started is false when the program could not be run at all.
func (r *restarts) ended(now time.Time, ok, started bool) verdict {
	switch {
	case started && r.cfg.Policy == config.RestartNever:
		return verdict{why: "the program ended (restart.policy=never)"}
	case ok && r.cfg.Policy != config.RestartAlways:
		return verdict{
			why: "the program exited with code 0 (restart.policy=" + string(r.cfg.Policy) +
				"); a program that should keep running must stay in the foreground",
		}
	}
	r.forget(now)
	r.failures = append(r.failures, now)
	limit := r.cfg.GiveUpAfter
	if !started && limit > 0 {
		limit = min(limit, startTries)
	}
	failed := strconv.Itoa(len(r.failures))
	if limit > 0 { // 0: it never gives up
		failed += " of " + strconv.Itoa(limit)
	}
	if limit > 0 && len(r.failures) >= limit {
		why := fmt.Sprintf("the program failed %d times within %v", len(r.failures), r.cfg.Within)
		if len(r.failures) == 1 {
			why = "the program failed"
		}
		if !started {
			why = "the program cannot be started here"
		}
		r.reset()
		return verdict{why: why, failed: failed}
	}
	after := r.delay
	r.delay = min(2*r.delay, r.cfg.MaxDelay)
	return verdict{again: true, after: after, failed: failed}
}

// forget drops failures that are too old to count; with none left, the delay starts anew.
func (r *restarts) forget(now time.Time) {
	for len(r.failures) > 0 && now.Sub(r.failures[0]) > r.cfg.Within {
		r.failures = r.failures[1:]
	}
	if len(r.failures) == 0 {
		r.delay = r.cfg.Delay
	}
}
