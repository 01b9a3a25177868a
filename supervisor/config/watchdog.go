package config

import "time"

// Watchdog says which device resets the machine, and whether to do without it.
type Watchdog struct {
	Device string       `yaml:"device" doc:"The device. It must be free of other programs."`
	Mode   WatchdogMode `yaml:"mode" doc:"automatic uses it if possible. With required, a node that cannot use it never becomes active."`
}

// check makes sure of this: when a child outlives its lease, the machine is reset before another node starts.
func (w Watchdog) check(p place) {
	const shortest = 1700 * time.Millisecond // three fifths of it are a second, the least that a watchdog can be set to
	checkChoice(p.key("mode"), w.Mode)
	checkAbsolute(p.key("device"), w.Device)
	lease := p.node.ZooKeeper.Lease
	if lease <= 0 || lease >= shortest {
		return
	}
	both := p.key("mode").and(p.top("zookeeper", "lease"))
	const why = "with a lease of %v, a watchdog, which counts in whole seconds, cannot be fed in time " +
		"and reset the machine before another node starts: that needs a lease of %v or more"
	switch w.Mode {
	case WatchdogRequired:
		both.fault(why, lease, shortest)
	case WatchdogAutomatic:
		both.warn("it is not used: "+why, lease, shortest)
	}
}
