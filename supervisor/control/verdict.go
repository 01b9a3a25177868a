package control

import (
	"cmp"
	"fmt"
	"slices"

	"understudy/election"
)

// Verdict is how a service is on the whole. A greater one is worse.
type Verdict uint8

// Verdicts.
const (
	Healthy   Verdict = iota
	Done              // run once, with success
	Held              // paused, stopped or to be drained: somebody wants it so
	Alone             // no node could take over
	Unhealthy         // active, with trouble
	Down              // active nowhere
)

func (v Verdict) String() string {
	return [...]string{"ok", "done", "held", "alone", "unhealthy", "down"}[v]
}

// Judge tells how the service is, and why, in words.
func (s ServiceStatus) Judge() (verdict Verdict, words string) {
	words = fmt.Sprintf("active on %s, ok", s.Active)
	for _, m := range s.Members {
		if m.Node == s.Active && m.Health != election.HealthOK {
			verdict, words = Unhealthy, fmt.Sprintf("active on %s, %s", s.Active, m.Health)
		}
	}
	switch {
	case s.Active == "" && s.Stopped:
		verdict, words = Held, s.Order
	case s.Active == "" && s.Ran != nil && len(s.Problems) == 0:
		return Done, s.Ran.Node + " ran it once: " + cmp.Or(s.Ran.Exit, "it ended")
	case s.Active == "" && s.Ran != nil:
		verdict = Unhealthy
	case s.Active == "":
		verdict, words = Down, "no node is active"
	case verdict == Healthy && s.Paused:
		verdict, words = Held, fmt.Sprintf("active on %s, paused", s.Active)
	}
	if verdict == Healthy && s.ill() {
		verdict, words = Unhealthy, "active on "+s.Active
	}
	if d := s.DrainedActive(); verdict == Healthy && d != nil {
		return Held, fmt.Sprintf("active on %s, which is %s", s.Active, d.Words)
	}
	if verdict == Healthy && !s.HasStandby() {
		verdict, words = Alone, fmt.Sprintf("active on %s, ok", s.Active)
	}
	if verdict == Healthy || len(s.Problems) == 0 {
		return verdict, words
	}
	worst := s.Problems[0]
	for _, f := range s.Problems {
		if verdict == Unhealthy && f.Node == s.Active && s.Active != "" { // what it is unhealthy by, before what else is wrong
			worst = f
		}
	}
	if s.Active == "" { // it says that
		words = worst.What
	} else {
		words += ": " + worst.What
	}
	for _, f := range s.Problems {
		if f.What != worst.What && (s.Unfit(f) || verdict == Down && f.Node != "") {
			words += " " + f.What
		}
	}
	return verdict, words
}

// Faulty reports whether the service does not run as it should.
func (s ServiceStatus) Faulty() bool {
	return slices.ContainsFunc(s.Problems, func(f Problem) bool { return f.Level == Fault })
}

// ill reports whether what is wrong is more than that the active node's program runs well, and no other node could take it.
func (s ServiceStatus) ill() bool {
	return slices.ContainsFunc(s.Problems, func(f Problem) bool {
		return f.Level == Fault && (f.Node == "" || f.Node == s.Active || s.HasStandby())
	})
}

// Unfit reports whether a problem is why a node could not take the service, which no other node could take.
func (s ServiceStatus) Unfit(f Problem) bool {
	return !s.HasStandby() && slices.ContainsFunc(s.Members, func(m MemberStatus) bool {
		return m.Node == f.Node && m.Node != s.Active && m.Health == election.HealthUnfit && m.Drained == nil
	})
}
