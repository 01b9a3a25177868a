package supervisor

import (
	"time"

	"understudy/election"
	"understudy/supervisor/control"
	"understudy/supervisor/service"
)

// Observer is told what happens here, while it happens and from several goroutines: it must return at once, and call nothing
// of the supervisor.
type Observer interface {
	service.Observer
	// Lease tells how far the lease reaches, each time that is known anew; a zero Lease is none.
	Lease(Lease)
	// Gone tells that a service is not in the config any more, and that nothing of it is left.
	Gone(service string)
	// Faulty tells why a changed config is not taken up; "": it is.
	Faulty(why string)
	// Warned tells which settings are dangerous, a line each.
	Warned(warnings []string)
	// Watchdog tells, once, which device is used and how. armed may be asked at any time whether it resets this machine unless
	// it is fed; that is the one thing of the supervisor that may be called.
	Watchdog(device, mode string, armed func() bool)
}

// Lease is how far the lease reaches.
type Lease = control.Lease

// State is how a service is on this node.
type State = control.State

// unobserved is the observer of a supervisor that nobody looks at.
type unobserved struct{}

func (unobserved) Lease(Lease)                          {}
func (unobserved) State(State)                          {}
func (unobserved) Gone(string)                          {}
func (unobserved) Fenced(string, string, time.Duration) {}
func (unobserved) Restarted(string)                     {}
func (unobserved) Faulty(string)                        {}
func (unobserved) Warned([]string)                      {}
func (unobserved) Watchdog(string, string, func() bool) {}

// showLease tells the observer of an extended lease.
func (s *supervisor) showLease(sess *election.Session, end time.Duration, beat bool) {
	l := Lease{Session: election.SessionName(sess.ID()), End: end}
	if beat {
		l.Took = max(s.cfg.Machine.Now()-sess.Acked(), time.Nanosecond)
	}
	s.cfg.Observer.Lease(l)
}

// showHeld tells the observer of a lease by promises, or that it is over.
func (s *supervisor) showHeld(sess *election.Session, end time.Duration, held bool) {
	s.cfg.Observer.Lease(Lease{Session: election.SessionName(sess.ID()), End: end, Held: held})
}
