package cli

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"understudy/election"
	"understudy/supervisor"
)

// tally counts the services of this node by their role, for the one line that a service manager shows.
type tally struct {
	news chan struct{} // holds a word when String may have changed

	mu        sync.Mutex // guards what follows
	roles     map[string]election.Role
	connected bool
	fault     string
}

func newTally() *tally {
	return &tally{news: make(chan struct{}, 1), roles: map[string]election.Role{}}
}

func (t *tally) note(change func()) {
	t.mu.Lock()
	change()
	t.mu.Unlock()
	poke(t.news)
}

// What follows makes it a supervisor.Observer.

// Lease notes whether there is a session.
func (t *tally) Lease(l supervisor.Lease) {
	t.note(func() { t.connected = l != supervisor.Lease{} })
}

// State notes a service's role.
func (t *tally) State(s supervisor.State) { t.note(func() { t.roles[s.Service] = s.Role }) }

// Gone forgets a service.
func (t *tally) Gone(service string) { t.note(func() { delete(t.roles, service) }) }

// Faulty notes why a changed config is not taken up.
func (t *tally) Faulty(why string) { t.note(func() { t.fault = why }) }

// Warned is nothing that the line tells.
func (*tally) Warned([]string) {}

// Fenced is nothing that the line tells.
func (*tally) Fenced(string, string, time.Duration) {}

// Restarted is nothing that the line tells.
func (*tally) Restarted(string) {}

// Watchdog is nothing that the line tells.
func (*tally) Watchdog(string, string, func() bool) {}

// String is the line.
func (t *tally) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	counts := map[election.Role]int{}
	for _, role := range t.roles {
		counts[role]++
	}
	var parts []string
	for _, role := range []election.Role{
		election.RoleActive, election.RoleStandby, election.RoleClaiming, election.RoleFencing, election.RoleStopping, election.RolePaused,
		election.RoleFailed, election.RoleOffline,
	} {
		if n := counts[role]; n > 0 || role == election.RoleActive || role == election.RoleStandby {
			parts = append(parts, fmt.Sprint(n, " ", role))
		}
	}
	line := count(len(t.roles), "service") + ": " + strings.Join(parts, ", ")
	if !t.connected {
		line += "; no session with ZooKeeper"
	}
	if t.fault != "" {
		line += "; " + t.fault
	}
	return line
}

// all tells several observers.
type all []supervisor.Observer

// Lease tells all of them, and so do the others.
func (a all) Lease(l supervisor.Lease) {
	for _, o := range a {
		o.Lease(l)
	}
}

// State tells how a service stands.
func (a all) State(s supervisor.State) {
	for _, o := range a {
		o.State(s)
	}
}

// Gone tells that nothing of a service is left.
func (a all) Gone(service string) {
	for _, o := range a {
		o.Gone(service)
	}
}

// Fenced tells what came of fencing.
func (a all) Fenced(service, by string, took time.Duration) {
	for _, o := range a {
		o.Fenced(service, by, took)
	}
}

// Restarted tells that a service's programs are started again.
func (a all) Restarted(service string) {
	for _, o := range a {
		o.Restarted(service)
	}
}

// Faulty tells why a changed config is not taken up.
func (a all) Faulty(why string) {
	for _, o := range a {
		o.Faulty(why)
	}
}

// Warned tells which settings are dangerous.
func (a all) Warned(warnings []string) {
	for _, o := range a {
		o.Warned(warnings)
	}
}

// Watchdog tells which device is used.
func (a all) Watchdog(device, mode string, armed func() bool) {
	for _, o := range a {
		o.Watchdog(device, mode, armed)
	}
}
