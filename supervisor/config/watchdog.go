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
	const why = "with a session_timeout of %v, a watchdog, which counts in whole seconds, cannot be fed in time and reset the machine before the " +
		"session ends: that needs a session_timeout of %v or more"
	switch w.Mode {
	case WatchdogRequired:
		both.fault(why, session, shortest)
	case WatchdogAutomatic:
		both.warn("it is not used: "+why, session, shortest)
	}
}
