package supervisor

import (
	"context"
	"time"

	"understudy/supervisor/wait"
)

// decider is a service, whose goroutine makes one step after the other.
type decider interface {
	Name() string
	Step() (about any, atMost time.Duration)
}

// deciding are the services that have to move now. While promises hold the session's lease, whoever asks ZooKeeper may wait for any time.
func (s *supervisor) deciding(over error) (all []decider) {
	if s.held.Load() && over == nil {
		return nil
	}
	s.roster.mu.Lock()
	defer s.roster.mu.Unlock()
	for _, v := range s.roster.services {
		all = append(all, v)
	}
	return all
}

// looks is how often, in two leases, somebody looks whether services move.
const looks = 4

// watchSteps tells stuck, once, that a service's step takes longer than it may, and two leases. P6: heartbeats go on then, so its
// lock would be kept, and nobody would decide. Only time between two looks counts, so a process that was frozen as a whole has not stood
// still. now is called because a simulated process freezes there.
func watchSteps(
	ctx context.Context, timeout, now func() time.Duration, services func() []decider, stuck func(service string, stood time.Duration),
) {
	still := map[any]time.Duration{} // how long a step has taken
	for {
		limit := timeout()
		every := limit / looks
		if !wait.For(ctx, every) {
			return
		}
		now()
		seen := map[any]time.Duration{}
		for _, v := range services() {
			about, atMost := v.Step()
			stood, before := still[about]
			if before {
				stood += every
			}
			if stood > limit && stood-limit > atMost {
				stuck(v.Name(), stood)
				return
			}
			seen[about] = stood
		}
		still = seen
	}
}
