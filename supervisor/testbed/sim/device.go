package sim

import (
	"errors"
	"math/rand/v2"
	"time"

	"understudy/supervisor/config"
)

// device is a node's hardware watchdog: it resets the host unless somebody writes to it in time, by true time, whatever the
// host does. World.mu guards it.
type device struct {
	node     *node
	holders  map[any]bool // a supervisor's guard, and guardians
	counting bool
	farewell bool // what was written last
	timeout  time.Duration
	alarm    *time.Timer
	taken    bool // by another program
}

var errWatchdogTaken = errors.New("another program holds the watchdog")

func (d *device) open(by *keeper, timeout time.Duration) error {
	if d.taken || len(d.holders) > 0 {
		return errWatchdogTaken
	}
	d.node.w.check.watchdogs.opened(d)
	d.timeout, d.counting = timeout, true
	d.holders[by] = true
	d.write(false)
	return nil
}

// write puts the reset off, whatever is written.
func (d *device) write(farewell bool) {
	d.farewell = farewell
	if d.alarm == nil {
		d.alarm = d.node.w.after(d.timeout, d.reset)
		return
	}
	d.alarm.Reset(d.timeout)
}

// close stops it, if nobody else has it and a farewell was the last that was written.
func (d *device) close(by any) {
	if !d.holders[by] {
		return
	}
	delete(d.holders, by)
	if len(d.holders) == 0 && d.farewell {
		d.off()
	}
}

func (d *device) off() {
	clear(d.holders)
	d.counting, d.farewell = false, false
	if d.alarm != nil {
		d.alarm.Stop()
	}
}

func (d *device) reset() {
	h := d.node.host
	if !d.counting {
		return
	}
	h.w.say("%s: the watchdog of %s resets it", h.name, d.node.name)
	h.w.check.watchdogs.reset(d)
	h.powerOff()
	h.w.after(drawn(h.rng, h.w.plan.Timeout), h.powerOn)
}

// watchdogsView is what the checker knows of watchdogs.
type watchdogsView struct {
	*checker
	resets int
}

// reset looks whether there was any need: a machine is not reset for what is dead, by who can feed.
func (dv *watchdogsView) reset(d *device) {
	dv.resets++
	for _, v := range dv.services {
		for p := range v.living {
			if p.tree.node == d.node.name {
				return
			}
		}
	}
	for _, t := range d.node.host.trees { // a warm program that its term has not promoted yet is in no view
		for p := range t.procs {
			if t.node == d.node.name && p.doomed {
				return
			}
		}
	}
	for by := range d.holders {
		if g, ok := by.(*guardian); ok && g.running() && time.Since(g.awake) > 2*d.timeout {
			dv.broken("watchdog", "%s is reset though nothing is alive there, and guardian %d could feed", d.node.name, g.index+1)
		}
	}
}

// opened looks whether a device is opened that may be counting for what is left of a previous supervisor.
func (dv *watchdogsView) opened(d *device) {
	for _, t := range d.node.host.orphans() {
		for _, p := range t.all() {
			dv.broken("watchdog", "%s opens the watchdog beside %v, whose supervisor is no more", d.node.name, p)
		}
	}
}

// spared tells whether nobody can be blamed for a process: it is held by its kernel and runs no instruction any more. Where a
// watchdog is required, even that has to be gone in time, but for what an operator or a loss of data cuts short.
func (c *checker) spared(v *serviceView, p *proc) bool {
	return p.doomed && (c.w.plan.Watchdog != watchdogRequired || v.struck[p.token] || c.sessions.lost[p.tree.session])
}

// Whether the nodes have watchdogs.
const (
	watchdogOff = iota
	watchdogAutomatic
	watchdogRequired
)

// leastWatched is of the shortest lease that may have a watchdog, which counts in whole seconds.
const leastWatched = 3500 * time.Millisecond

// watchdogs draws whether there are any, and adds what they are for to the episodes that are drawn: in a stream of its own, so
// that other seeds are what they were.
func (p *Plan) watchdogs() {
	r := rand.New(rand.NewPCG(p.Seed, 3))
	if p.Timeout < leastWatched || r.IntN(4) > 0 {
		return
	}
	p.Watchdog = pick(r, watchdogAutomatic, watchdogRequired, watchdogRequired)
	if p.Calm {
		return
	}
	kinds := []Kind{SpoilWatchdog, StickProcesses}
	if p.Watchdog == watchdogRequired {
		kinds = append(kinds, FreezeAll, FreezeAll, FreezeAll)
	}
	for i := range p.Episodes {
		e := &p.Episodes[i]
		for range r.IntN(3) {
			f := p.fault(r, pick(r, kinds...))
			f.At, f.Active = drawn(r, e.Length), r.IntN(4) > 0
			if f.Kind == FreezeAll { // about as long as a lease may be left
				f.For = p.Timeout/4 + drawn(r, p.Timeout)
			}
			e.Length = max(e.Length, f.At+f.For)
			e.Faults = append(e.Faults, f)
		}
		sortFaults(e.Faults)
	}
}

func (p *Plan) watchdog() *config.Watchdog {
	if p.Watchdog == watchdogOff {
		return nil
	}
	mode := config.WatchdogAutomatic
	if p.Watchdog == watchdogRequired {
		mode = config.WatchdogRequired
	}
	return &config.Watchdog{Device: "/dev/watchdog", Mode: mode}
}

// standstills has machines stand still, each for less than a lease leaves to a session. It has a stream of its own.
func (p *Plan) standstills() {
	r := rand.New(rand.NewPCG(p.Seed, 23))
	for i := range p.Episodes {
		e := &p.Episodes[i]
		if r.IntN(3) > 0 {
			continue
		}
		f := p.fault(r, StandStill)
		f.At, f.For = drawn(r, e.Length), drawn(r, p.Timeout/8)
		e.Faults = append(e.Faults, f)
		sortFaults(e.Faults)
	}
}

// standStill stops a supervisor and both its guardians for a moment: for less than a lease leaves until others take its lock. World.mu is held.
func (hf *hostFaults) standStill(f Fault, inc *incarnation) (done bool) {
	if inc.guard == nil || !inc.running() {
		return false
	}
	f.For = min(f.For, hf.plan.lease(inc.node.index)/10) // others wait that much longer than the lease: see Claim.over
	inc.halt(f.For)
	for _, s := range inc.guard.guardians {
		if s != nil && s.running() {
			s.halt(f.For)
		}
	}
	return true
}

// freezeAll stops a supervisor and both its guardians at once, which nothing but a watchdog can answer. World.mu is held.
func (hf *hostFaults) freezeAll(f Fault, inc *incarnation) (done bool) {
	if hf.plan.Watchdog != watchdogRequired || inc.guard == nil || !inc.mayLose(2) {
		return false
	}
	inc.halt(f.For)
	for n, s := range inc.guard.guardians {
		if s != nil && s.running() {
			s.halt(f.For + time.Duration(f.N>>(4*n)%16)*time.Millisecond)
		}
	}
	return true
}

// spoilWatchdog has another program hold a node's device. World.mu is held, as it is when that ends.
func (hf *hostFaults) spoilWatchdog(n *node) (end func(), done bool) {
	if hf.plan.Watchdog == watchdogOff || n.watchdog.taken {
		return nil, false
	}
	hf.say("%s: another program is about to hold the watchdog", n.name)
	n.watchdog.taken = true
	return func() { n.watchdog.taken = false }, true
}
