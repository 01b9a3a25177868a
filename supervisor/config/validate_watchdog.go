package config

import (
	"time"
)

// watchdog checks that the machine is reset before the session of a child that outlives its lease can end.
func (v *validator) watchdog(p path, w Watchdog, session time.Duration) {
	const shortest = 3 * time.Second // a third of it is a second, the least that a watchdog can be set to
	v.choice(p.key("mode"), string(w.Mode), w.Mode)
	v.absolute(p.key("device"), w.Device)
	if session <= 0 || session >= shortest {
		return
	}
	keys := []path{p.key("mode"), {"zookeeper", "session_timeout"}}
	const arithmetic = "the session may end T - (2*T/12 + T/4) = %v after a heartbeat was sent; a watchdog, which counts in whole seconds, " +
		"has to have reset the machine by then, and to leave T/4 = %v in which it is fed: that takes a session_timeout of %v or more"
	end, feeding := (session - 2*session/12 - session/4).Round(time.Millisecond), session/4
	switch w.Mode {
	case WatchdogRequired:
		v.ratio(keys, "with a session_timeout of %v, "+arithmetic, session, end, feeding, shortest)
	case WatchdogAutomatic:
		v.doubt(keys, "it is not used: with a session_timeout of %v, "+arithmetic, session, end, feeding, shortest)
	}
}
