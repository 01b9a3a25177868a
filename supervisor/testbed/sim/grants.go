package sim

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// Servers that grant sessions another timeout than before: an ensemble that is restarted, server by server, with other bounds.

// In one of so many seeds servers do that, beside all that happens there anyway: so the others are what they were before.
const (
	regrantsIn   = 5
	regrantsFrom = 2
)

// grants draws what servers grant, and adds their restarts to the episodes that are drawn. Nothing rests on that but P7: what is short enough not
// to be noticed is so in the shortest session.
func (p *Plan) grants() {
	p.Least, p.Most = p.Timeout, p.Timeout
	if p.Seed%regrantsIn != regrantsFrom {
		return
	}
	r := rand.New(rand.NewPCG(p.Seed, 4))
	p.Regrants = true
	p.Tick = p.Timeout / pick[time.Duration](r, 10, 20, 40)
	p.Most = time.Duration(float64(p.Timeout) * pick(r, 1.5, 2, 3, 5)).Round(100 * time.Millisecond)
	if !p.Calm {
		p.Least = time.Duration(float64(p.Timeout) / pick(r, 1.5, 2, 3, 5)).Round(100 * time.Millisecond)
	}
	for i := range p.Episodes {
		e := &p.Episodes[i]
		if p.Calm {
			for n := range e.Faults {
				if e.Faults[n].Kind == RestartServer && r.IntN(3) > 0 {
					e.Faults[n].Kind = RegrantSessions
				}
			}
			continue
		}
		for range r.IntN(4) {
			f := p.fault(r, RegrantSessions)
			f.At, f.For = drawn(r, e.Length), drawn(r, p.Timeout/5)
			e.Faults = append(e.Faults, f)
		}
		sortFaults(e.Faults)
	}
}

// longest is the longest timeout that a session may have.
func (p *Plan) longest() time.Duration { return p.Most }

// grant is what servers grant from then on.
func (p *Plan) grant(f Fault) (shortest, longest time.Duration) {
	switch f.N % 4 {
	case 0, 1:
		return min(2*p.Tick, p.Least), p.Least
	case 2:
		return p.Most, p.Most
	}
	return min(2*p.Tick, p.Least), p.Most
}

// regrant restarts servers that grant something else then.
func (sf *serverFaults) regrant(f Fault) (end func(), done bool) {
	if !sf.plan.Regrants {
		return nil, false
	}
	shortest, longest := sf.plan.grant(f)
	sf.say("%v: they grant %v to %v", f, shortest, longest)
	for _, s := range sf.zk.some(f.Server) {
		s.Down()
		s.SetBounds(shortest, longest)
	}
	return func() {
		sf.say("over: %v", f)
		for _, s := range sf.zk.some(f.Server) {
			s.Up()
		}
	}, true
}

func (p *Plan) grantWords() string {
	if !p.Regrants {
		return ""
	}
	return fmt.Sprintf(", granted %v to %v", p.Least, p.Most)
}
