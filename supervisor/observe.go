package supervisor

import (
	"errors"
	"time"

	"understudy/election"
	"understudy/fencing"
)

// Observer is told what happens here, while it happens and from several goroutines: it must return at once, and call nothing
// of the supervisor.
type Observer interface {
	// Lease tells how far the lease reaches, each time that is known anew; a zero Lease is none.
	Lease(Lease)
	// State tells how a service stands, each time that changes.
	State(State)
	// Gone tells that a service is not in the config any more, and that nothing of it is left.
	Gone(service string)
	// Fenced tells what came of making sure that a former active is dead. by is empty when that was refused.
	Fenced(service, by string, took time.Duration)
	// Restarted tells that a service's programs are started again where they were.
	Restarted(service string)
	// Faulty tells why a changed config is not taken up; "": it is.
	Faulty(why string)
	// Warned tells which settings are dangerous, a line each.
	Warned(warnings []string)
	// Watchdog tells, once, which device is used and how. armed may be asked at any time whether it resets this machine unless
	// it is fed; that is the one thing of the supervisor that may be called.
	Watchdog(device, mode string, armed func() bool)
}

// Lease is that of one session with ZooKeeper.
type Lease struct {
	Session string
	End     time.Duration // on the machine's clock, Machine.Now
	Held    bool          // by the promises of other members, in place of ZooKeeper
	Took    time.Duration // what the heartbeat that says so took; 0: not known
}

// State is how a service stands on this node.
type State struct {
	Service string
	Role    string
	Reason  string // why it has this role
	Since   time.Time
	Ready   bool   // its programs run, and have shown that they do their work
	Health  string // of its programs, while it is active
	Why     string // what is to be known besides
	Token   int64  // of the newest term
	By      string // while it is active: how the former active was known to be dead
}

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

// show tells the observer how the service stands.
func (v *service) show() {
	m := v.member()
	s := State{
		Service: v.name, Role: m.Role, Reason: v.reached.String(), Since: v.since, Ready: v.ready, Health: m.Health, Why: m.Why, Token: v.token,
	}
	if v.state.role == Active {
		s.By = v.fenced
	}
	v.observer.State(s)
}

// makeReady notes whether the child is ready, which is for those who look at this node only.
func (v *service) makeReady(ready bool) {
	if v.ready != ready {
		v.ready = ready
		v.show()
	}
}

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

// showFenced tells the observer what came of fencing.
func (v *service) showFenced(o fencing.Outcome, err error, began time.Time) {
	if errors.Is(err, errPaused) {
		return // nothing came of it
	}
	by := o.By
	if err != nil {
		by = ""
	}
	v.observer.Fenced(v.name, by, time.Since(began))
}
