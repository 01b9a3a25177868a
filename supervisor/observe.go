package supervisor

import (
	"time"

	"understudy/election"
	"understudy/supervisor/control"
	"understudy/supervisor/service"
)

// Observer is told events as they happen, by several goroutines. Its methods must return at once, and must not call the
// supervisor.
type Observer interface {
	service.Observer
	// Lease tells each new end of the lease; a zero Lease is none.
	Lease(Lease)
	// Gone tells that a service is not in the config any more, and has ended.
	Gone(service string)
	// Faulty tells why a changed config is not taken up; "": it is.
	Faulty(why string)
	// Warned tells which settings are dangerous, a line each.
	Warned(warnings []string)
	// Watchdog tells, once, which device is used and how. armed reports at any time whether it resets this machine unless
	// it is fed; an observer may call no other function of the supervisor.
	Watchdog(device, mode string, armed func() bool)
}

// Lease is the end of the lease.
type Lease = control.Lease

// State is the state of a service on this node.
type State = control.State

// unobserved is the observer that does nothing.
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
