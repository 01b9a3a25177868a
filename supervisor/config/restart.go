package config

import "time"

// Restart says what follows the end of a child. GiveUpAfter failures within Within hand the lock to another node, and
// this one does not stand again for RejoinAfter; 0 failures means that it never gives up.
type Restart struct {
	Policy      RestartPolicy `yaml:"policy" doc:"on-failure restarts it here, and exit code 0 gives the service to another node. always restarts it here after success too. never gives the service to another node."`
	Delay       time.Duration `yaml:"delay" doc:"How long to wait before the first restart. The delay doubles with each failure."`
	MaxDelay    time.Duration `yaml:"max_delay" doc:"The longest delay."`
	GiveUpAfter int           `yaml:"give_up_after" doc:"After how many failures the service is given to another node. 0 means never."`
	Within      time.Duration `yaml:"within" doc:"The time in which failures are counted."`
	RejoinAfter time.Duration `yaml:"rejoin_after" doc:"How long a node on which the service failed waits before it tries again."`
}

// mostFailures bounds give_up_after; more would never be reached.
const mostFailures = 10_000

// shortestEndless is the shortest delay of restarts without end that is plausible.
const shortestEndless = 10 * time.Millisecond

func (r Restart) check(p place) {
	delay, maxDelay, within := p.key("delay"), p.key("max_delay"), p.key("within")
	checkChoice(p.key("policy"), r.Policy)
	sound := checkNotNegative(delay, r.Delay)
	sound = checkNotNegative(maxDelay, r.MaxDelay) && sound
	sound = checkNotNegative(within, r.Within) && sound
	checkNotNegative(p.key("rejoin_after"), r.RejoinAfter)
	if r.GiveUpAfter < 0 || r.GiveUpAfter > mostFailures {
		p.key("give_up_after").fault("%d is not a number from 1 to %d, or 0 for never", r.GiveUpAfter, mostFailures)
		return
	}
	idle := r.Policy == RestartNever && r.GiveUpAfter > 1 && r.GiveUpAfter != writtenDefaults().Restart.GiveUpAfter
	if after := p.key("give_up_after"); idle && after.given() && p.keys[0][0] != "defaults" {
		after.warn("has no effect with policy: never, which gives the service to another node when the program first ends")
	}
	if !sound || r.Policy == RestartNever {
		return
	}
	if r.MaxDelay < r.Delay {
		maxDelay.and(delay).fault("max_delay %v is shorter than delay %v: write a shorter delay, or max_delay: %[2]v or more",
			r.MaxDelay, r.Delay)
		return
	}
	if r.GiveUpAfter == 0 {
		if r.MaxDelay < shortestEndless {
			maxDelay.and(delay).warn("%v is short: a program that fails at once is started again without end, "+
				"and takes all processor time. Write %v or more, or set give_up_after", r.MaxDelay, shortestEndless)
		}
		return
	}
	if least := r.spread(0); least > 0 && least >= r.Within {
		within.and(delay, p.key("give_up_after")).fault(
			"%d failures with the delays between them take %v or more, so within %v the service would never give up: "+
				"make within longer, or delay or give_up_after smaller",
			r.GiveUpAfter, least, r.Within)
	} else if r.Within == 0 {
		within.fault("must be positive")
	}
}

// spread is the least time from the first to the last of the failures that make a service give up, when it takes one to
// notice each of them.
func (r Restart) spread(one time.Duration) time.Duration {
	sum, delay := time.Duration(0), r.Delay
	for range r.GiveUpAfter - 1 {
		if sum += one + delay; sum > longest {
			return sum
		}
		delay = min(2*delay, r.MaxDelay)
	}
	return sum
}

// checkSlowness refuses failures that come too slowly to be counted: an unhealthy service would be restarted here for ever
// instead of being given to another node.
func (s Service) checkSlowness(p place) {
	r, h := s.Restart, s.Health
	if r.Policy == RestartNever || r.GiveUpAfter < 2 || r.Within <= 0 || r.spread(0) >= r.Within {
		return
	}
	within := p.key("restart").key("within")
	if h.Way() == "" || !h.sound() {
		return
	}
	health, one := p.key("health"), h.StartDelay+time.Duration(h.Failures-1)*h.Interval // to notice it, at the least
	if least := r.spread(one); least >= r.Within {
		within.and(health.key("interval"), health.key("failures"), health.key("start_delay")).fault(
			"an unhealthy service would never be given to another node: each time takes %v to notice, so %d of them take %v or more, "+
				"and within is %v: make within longer, or the checks more frequent",
			one, r.GiveUpAfter, least, r.Within)
	}
}

// sound reports whether the times can be added.
func (h HealthCheck) sound() bool {
	return 0 < h.Interval && h.Interval <= longest && 0 < h.Failures && h.Failures <= mostFailures &&
		0 <= h.StartDelay && h.StartDelay <= longest
}
