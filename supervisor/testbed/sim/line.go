package sim

import (
	"time"

	"understudy/supervisor/guard"
)

// line is the socket between a guardian and its supervisor. World.mu guards it.
type line struct {
	inbox    []*guard.Message // in the guardian's socket
	unsent   []*guard.Message // what that did not take yet
	said     []*guard.Message // that the supervisor has not heard
	hungUp   bool             // the supervisor is gone, which the guardian may not have noticed
	orphaned bool             // it has
}

// room is how many messages a guardian's socket takes.
const room = 6

// put reports whether the socket takes a message; else that waits.
func (l *line) put(m *guard.Message) bool {
	if len(l.unsent) > 0 || len(l.inbox) >= room {
		l.unsent = append(l.unsent, m)
		return false
	}
	l.inbox = append(l.inbox, m)
	return true
}

// refill moves one message on that the socket did not take before.
func (l *line) refill() bool {
	if len(l.unsent) == 0 || len(l.inbox) >= room {
		return false
	}
	l.inbox, l.unsent = append(l.inbox, l.unsent[0]), l.unsent[1:]
	return true
}

// next is what the guardian hears next; nil: nothing.
func (l *line) next() *guard.Message {
	if len(l.inbox) == 0 || l.orphaned {
		return nil
	}
	m := l.inbox[0]
	l.inbox = l.inbox[1:]
	return m
}

// alarm is a guardian's timer.
type alarm struct {
	timer *time.Timer
	at    time.Duration // on the host's clock; 0: it is not set
}

// set sets it. One that rings earlier is left, and set again then: most deadlines move before they come.
func (a *alarm) set(g *guardian, at time.Duration) {
	if at == 0 || a.at > 0 && a.at <= at {
		return
	}
	a.at = at
	if a.timer != nil {
		a.timer.Reset(g.host.until(at))
		return
	}
	a.timer = g.w.after(g.host.until(at), func() {
		a.at = 0
		g.late(g.rings(), g.wake)
	})
}

func (a *alarm) stop() {
	if a.timer != nil {
		a.timer.Stop()
	}
}
