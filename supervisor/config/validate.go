package config

import (
	"fmt"
	"maps"
	"net"
	"os"
	"slices"
)

// Validate reports, as Faults that name keys but no places, what keeps a configuration from being run. It is for those
// who fill a Config from flags; what Read returns has passed it.
func (c *Config) Validate() error {
	r := report{where: newPositions(nil)}
	c.document().check(&r)
	if len(r.found) == 0 {
		return nil // and no error that is an empty list
	}
	return keyed(r.found)
}

// Doubts are what is allowed and probably not meant, as Validate reports faults.
func (c *Config) Doubts() Faults {
	r := report{where: newPositions(nil)}
	c.document().check(&r)
	return keyed(r.warnings)
}

func keyed(all []found) (faults Faults) {
	for _, f := range all {
		faults = append(faults, Fault{Key: f.keys[0].String(), Message: f.message, Danger: f.danger})
	}
	slices.SortStableFunc(faults, Fault.compare)
	return slices.Compact(faults)
}

// check has each section check itself, and then what services have to be together.
func (doc document) check(r *report) {
	r.node = &doc.Config
	r.asks = r.asks || doc.Fencing.Agent != nil
	if message := nameFault(doc.Config.Node); message != "" && r.on == "" {
		r.top("node").fault("%s", message)
	}
	doc.Node.check(r.top("node"))
	doc.ZooKeeper.check(r.top("zookeeper"))
	checkChoice(r.top("log", "level"), doc.Log.Level)
	checkChoice(r.top("log", "format"), doc.Log.Format)
	doc.HTTP.check(r.top("http"))
	if slices.Contains(doc.ZooKeeper.Servers, ServerAddress(doc.HTTP.Listen)) {
		r.top("http", "listen").warn("%s is a ZooKeeper server's address, too: give each a port of its own", doc.HTTP.Listen)
	}
	if agent := doc.Fencing.Agent; agent != nil {
		at := r.top("fencing", "agent")
		agent.check(at)
		if agent.Listen != "" && agent.Listen == doc.HTTP.Listen {
			at.key("listen").and(r.top("http", "listen")).fault("%s is http.listen, too: give each a port of its own", agent.Listen)
		}
		key, address, instead := "listen", agent.Listen, ":PORT"
		if agent.Advertise != "" {
			key, address, instead = "advertise", agent.Advertise, "HOST:PORT, or leave it out"
		}
		host, _, _ := net.SplitHostPort(address)
		if z := doc.ZooKeeper; isLoopback(host) && len(z.Servers) > 0 && !z.local() {
			at.key(key).warn("no other host reaches %s, so none can ask whether a program here is dead: write %s", address, instead)
		}
	}
	if doc.Notify != nil {
		doc.Notify.check(r.top("notify"))
	}
	doc.Watchdog.check(r.top("watchdog"))
	if device := r.top("watchdog", "device"); doc.Watchdog.Mode == WatchdogOff && device.given() && doc.Node.named == nil &&
		doc.Watchdog.Device != Default().Watchdog.Device {
		device.warn("has no effect with mode: off: write mode: automatic or mode: required")
	}
	// Nothing to run yet is fine where that is said, and where files that are still to come may bring it.
	if p := r.top("services"); doc.Services == nil && !p.given() && !slices.ContainsFunc(doc.Include, isGlob) {
		p.fault(nothingToRun)
	}
	taken, owners, inherited := map[string]string{}, map[string]string{}, map[string][]string{}
	held := map[Contain]string{} // who wants its processes held so
	for _, name := range slices.Sorted(maps.Keys(doc.Services)) {
		p, service := r.top("services", name), doc.Services[name]
		if message := nameFault(name); message != "" {
			p.keyFault(message)
		}
		doc.checkNodes(p, service.Nodes)
		service.checkProgram(p)
		service.check(p)
		service.checkAlone(p, taken)
		if r.on == "" && len(service.Command) > 0 && !p.key("command").given() && len(service.Nodes) == 0 {
			same := fmt.Sprint(service.Command, service.Env, service.EnvFile, service.WorkingDir, service.User)
			inherited[same] = append(inherited[same], name)
		}
		service.checkOwners(p, owners)
		service.Contain.checkAlike(p.key("contain"), held)
	}
	for _, names := range inherited {
		if len(names) > 1 {
			r.top("defaults", "command").warn("%s and %s run it with the same settings: if that is not meant, write each its own command",
				names[0], names[1])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(doc.Services)) {
		doc.Services[name].checkMounts(r.top("services", name), held[ContainPidns])
	}
}

const nothingToRun = "missing: there is nothing to run (write `services: {}` if you mean that)"

// checkAlike refuses what one supervisor cannot do: it holds all its services in one way.
func (c Contain) checkAlike(p place, held map[Contain]string) {
	for other, kind := range map[Contain]Contain{ContainPidns: ContainCgroup, ContainCgroup: ContainPidns} {
		if c == kind && held[other] != "" {
			p.fault("%s is %s, and one supervisor contains all services in the same way: run another one for this service",
				held[other], other)
		}
	}
	held[c] = p.keys[0].String()
}

// hostname is the default for a node's name.
func hostname(p place) string {
	name, err := os.Hostname()
	if err != nil {
		p.fault("missing, and the host has no name to take instead: %v", err)
		return "unknown"
	}
	if message := nameFault(name); message != "" {
		p.fault("missing, and the host's name cannot be used: %s", message)
		return "unknown"
	}
	return name
}
