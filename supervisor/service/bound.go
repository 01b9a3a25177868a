package service

import (
	"math"
	"time"

	"understudy/fencing"
	"understudy/supervisor/service/role"
	"understudy/supervisor/wait"
)

const (
	// endless is the bound of an action without a lock, which is in nobody's way, and of one that tries until the session is over.
	endless = time.Duration(math.MaxInt64)
	// windUp bounds the wait for helpers that were told to end: what they have begun has limits, the longest is that of a command's death.
	windUp = time.Minute
	// requests are more than an action sends to ZooKeeper one after the other. A session bounds the wait for each answer.
	requests = 20
)

// step is what the goroutine that serves is about, from one step of the role machine to the next.
type step struct {
	atMost time.Duration
	over   <-chan struct{} // closed when the programs have ended: from then on it may take windUp; nil: none run
}

// windingUp is a step whose programs have ended: a step of its own, which began then.
type windingUp struct{ *step }

// bound is how long the action of a place may take. P6: who stands still for longer must not keep the lock.
func (t *stay) bound(p role.Place) time.Duration {
	v, some := t.v, windUp+requests*t.s.LeaseLength()
	switch p {
	case role.Claiming, role.Arming, role.HandingOver, role.Judging:
		return some
	case role.Fencing:
		if p := t.term.claim.Previous; p != nil { // its lease may have been a longer one
			some += 3 * time.Duration(p.LeaseMs) * time.Millisecond
		}
		return some + 2*longest(v.conf.Fence) + v.conf.GraceDelay + max(v.node.Promises.Bound(v.name)-v.node.Machine.Now(), 0)
	case role.Stopping:
		if v.conf.Replicated != nil { // it may be demoted first
			some += v.conf.Replicated.Timeout
		}
		if t.term.run.programs != nil {
			some += t.term.run.programs.StopsWithin(v.conf.Service)
		}
		return some
	case role.Waiting:
		return some + t.term.run.delay
	}
	return endless
}

// longest is more than steps take that are tried one after the other.
func longest(steps []fencing.Step) (d time.Duration) {
	for _, s := range steps {
		d += s.Timeout
	}
	return d
}

// Step is what the service is about, and how long that may take. It is safe.
func (v *Service) Step() (about any, atMost time.Duration) {
	now := v.step.Load()
	switch {
	case now == nil: // it does not serve yet
		return now, endless
	case wait.Closed(now.over):
		return windingUp{now}, windUp
	}
	return now, now.atMost
}
