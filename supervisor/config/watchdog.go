package config

import "time"

// Watchdog says which device resets the machine, and whether to do without it.
type Watchdog struct {
	Device string       `yaml:"device" doc:"The watchdog device, an absolute path. It must be free of other programs."`
	Mode   WatchdogMode `yaml:"mode" doc:"off means that it is not used, automatic that it is used if possible. With required, a node that cannot use it never becomes active."`
}

// check makes sure of this: when a child outlives its lease, the machine is reset before the session can end.
func (w Watchdog) check(p place) {
	const shortest = 3 * time.Second // a third of it is a second, the least that a watchdog can be set to
	checkChoice(p.key("mode"), w.Mode)
	checkAbsolute(p.key("device"), w.Device)
	session := p.node.ZooKeeper.counted()
	if session <= 0 || session >= shortest {
		return
	}
	both := p.key("mode").and(p.top("zookeeper", "session_timeout"))
	const arithmetic = "the session may end T - (2*T/12 + T/4) = %v after a heartbeat was sent; a watchdog, which counts in whole seconds, " +
		"must have reset the machine by then, and must leave T/4 = %v to feed it: that needs a session_timeout of %v or more"
	end, feeding := (session - 2*session/12 - session/4).Round(time.Millisecond), session/4
	switch w.Mode {
	case WatchdogRequired:
		both.fault("with a session_timeout of %v, "+arithmetic, session, end, feeding, shortest)
	case WatchdogAutomatic:
		both.doubt("it is not used: with a session_timeout of %v, "+arithmetic, session, end, feeding, shortest)
	}
}
