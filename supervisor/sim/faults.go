//go:build simulation

package sim

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"understudy/election/jute"
)

// Kind is a kind of fault.
type Kind string

// The kinds of faults.
const (
	CrashSupervisor  Kind = "supervisor killed"
	FreezeSupervisor Kind = "supervisor frozen"
	StopSupervisor   Kind = "supervisor asked to stop"
	KillGuardian     Kind = "guardian killed"
	KillGuardians    Kind = "both guardians killed"
	FreezeGuardian   Kind = "guardian frozen"
	PowerOff         Kind = "host without power"
	CutLink          Kind = "link cut"
	SlowLink         Kind = "link slow"
	RestartServer    Kind = "server down"
	NewLeader        Kind = "leader changed"
	BreakReply       Kind = "reply lost"
	LoseData         Kind = "data lost"
	DeleteLock       Kind = "lock deleted by hand"
	DeleteCrumb      Kind = "breadcrumb deleted by hand"
	DeleteNode       Kind = "node's znode deleted by hand"
	StickProcesses   Kind = "processes held by the kernel"
	TrapFreeze       Kind = "supervisor frozen at a moment"
	TrapCrash        Kind = "supervisor killed at a moment"
	BadProgram       Kind = "program fails"
	KillChild        Kind = "child killed"
	IsolateServer    Kind = "server cut off from the others"
	CutServers       Kind = "servers cut one way"
	SlowServers      Kind = "servers slow one way"
	SplitNetwork     Kind = "network split"
)

var allKinds = []Kind{
	CrashSupervisor, FreezeSupervisor, StopSupervisor, KillGuardian, KillGuardians, FreezeGuardian, PowerOff, CutLink, CutLink, CutLink, SlowLink,
	RestartServer, NewLeader, BreakReply, BreakReply, LoseData, DeleteLock, DeleteCrumb, DeleteNode, StickProcesses, TrapFreeze, TrapFreeze,
	TrapCrash, TrapCrash, BadProgram, KillChild, IsolateServer, IsolateServer, IsolateServer, CutServers, SlowServers, SplitNetwork, SplitNetwork,
}

var calmKinds = []Kind{RestartServer, NewLeader, CutLink, KillGuardian, FreezeSupervisor, FreezeGuardian, BreakReply,
	IsolateServer, CutServers, SlowServers}

// Kinds is every kind once.
func Kinds() (kinds []Kind) {
	for _, k := range allKinds {
		if !slices.Contains(kinds, k) {
			kinds = append(kinds, k)
		}
	}
	return kinds
}

// kinds is what may happen in this plan.
func (p *Plan) kinds() (kinds []Kind) {
	if p.Calm {
		return calmKinds
	}
	for _, k := range allKinds {
		if p.Servers == 1 && (k == IsolateServer || k == CutServers || k == SlowServers || k == SplitNetwork) {
			continue
		}
		kinds = append(kinds, k)
	}
	return kinds
}

// Ways of a cut.
const (
	cutBoth = iota
	cutUp
	cutDown
	cutReset
)

var wayNames = [...]string{"silently", "towards the server", "from the server", "with a reset", "silently"}

// String tells a fault in plain words.
func (f Fault) String() string {
	d := f.For.Round(time.Millisecond)
	node, server := fmt.Sprintf("n%d", f.Node+1), fmt.Sprintf("zk%d", f.Server+1)
	if f.Active {
		node += " (or who is active)"
	}
	if f.Server < 0 {
		server = "all servers"
	}
	switch f.Kind {
	case CutLink:
		return fmt.Sprintf("%s of %s to %s, %s, for %v", f.Kind, node, server, wayNames[f.Way], d)
	case SlowLink:
		return fmt.Sprintf("%s between %s and %s by %v, for %v", f.Kind, node, server, f.slowness().Round(time.Microsecond), d)
	case RestartServer:
		return fmt.Sprintf("%s: %s, for %v", f.Kind, server, d)
	case NewLeader, LoseData:
		return string(f.Kind)
	case SplitNetwork:
		return fmt.Sprintf("%s: zk%d and hosts %04b from the rest, for %v", f.Kind, f.N%3+1, f.N/8%16, d)
	case IsolateServer, CutServers, SlowServers:
		from, to := f.between(3)
		return fmt.Sprintf("%s: zk%d (to zk%d), for %v", f.Kind, from+1, to+1, d)
	case TrapFreeze, TrapCrash:
		return fmt.Sprintf("%s: %s, %s, for %v", f.Kind, node, momentNames[f.N%int(moments)], d)
	case StickProcesses:
		more := ""
		if f.N%2 == 0 {
			more = ", and the supervisor killed"
		}
		return fmt.Sprintf("%s: %s, for %v%s", f.Kind, node, d, more)
	case BreakReply:
		op, how := f.broken()
		return fmt.Sprintf("%s: the next %v at %s is treated with %s", f.Kind, op, server, how)
	}
	return fmt.Sprintf("%s: %s, for %v", f.Kind, node, d)
}

func (f Fault) slowness() time.Duration { return f.For / time.Duration(1+f.N%20) }

// broken is which request is hit, and how.
func (f Fault) broken() (jute.Op, string) {
	ops := []jute.Op{jute.OpMulti, jute.OpMulti, jute.OpMulti, jute.OpCreate, jute.OpSetData, jute.OpGetData, jute.OpExists, jute.OpCreateSession, jute.OpCloseSession}
	return ops[f.N%len(ops)], []string{"close before", "close after", "loss of the reply"}[f.N/16%3]
}

// begin lets a fault happen. What it returns, unless nil, ends it. It reports false when the fault would break the rules.
func (w *world) begin(f Fault) (end func(), done bool) {
	if f.Active {
		f.Node, f.Active = w.activeNode(f.Node), false
	}
	switch f.Kind {
	case SplitNetwork:
		return w.split(f)
	case CutLink, SlowLink:
		return w.disturbLink(f), true
	case RestartServer, NewLeader, BreakReply, LoseData, DeleteLock, DeleteCrumb, DeleteNode, IsolateServer, CutServers, SlowServers:
		return w.disturbServer(f)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	undo, done := w.disturbHost(f, w.nodes[f.Node])
	if undo == nil {
		return nil, done
	}
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		undo()
	}, done
}

// disturbHost is faults of a host and what runs on it. World.mu is held, as it is when the fault ends.
func (w *world) disturbHost(f Fault, n *node) (end func(), done bool) {
	switch f.Kind {
	case PowerOff:
		n.host.powerOff()
		return func() { n.host.powerOn() }, true
	case StickProcesses:
		n.host.stuck = time.Now().Add(f.For)
		w.say("%v", f)
		if f.N%2 == 0 && n.inc != nil && n.inc.mayLose(1) {
			n.crash(true)
			again := f.For * time.Duration(f.N/2%4) / 3
			w.after(again, n.start)
			return n.start, true
		}
		return nil, true
	case BadProgram:
		s := w.plan.services()[f.N%w.plan.Services]
		w.trials[s] = &trouble{life: time.Duration(1+f.N%50) * 20 * time.Millisecond, code: f.N / 64 % 2, absent: f.N/128%4 == 0}
		return func() { delete(w.trials, s) }, true
	case KillChild:
		for _, name := range slices.Sorted(maps.Keys(n.host.trees)) {
			for _, p := range n.host.trees[name].all() {
				if p.main {
					p.kill()
				}
			}
		}
		return nil, true
	}
	if n.inc == nil {
		return nil, false
	}
	return w.disturbNode(f, n)
}

// disturbNode is faults of a supervisor and its guardians. World.mu is held.
func (w *world) disturbNode(f Fault, n *node) (end func(), done bool) {
	inc := n.inc
	switch f.Kind {
	case StopSupervisor:
		inc.asked = true
		go inc.stop()
		return func() { n.start() }, true
	case TrapFreeze, TrapCrash:
		t := &trap{at: moment(f.N % int(moments)), again: f.For}
		if f.Kind == TrapFreeze {
			t.freeze = f.For + 1
		}
		n.traps = append(n.traps, t)
		n.armed.Add(1)
		return nil, true
	case CrashSupervisor:
		if !inc.mayLose(1) {
			return nil, false
		}
		w.say("%s: supervisor %d is killed", n.name, inc.number)
		n.crash(true)
		return func() { n.start() }, true
	case FreezeSupervisor:
		if !inc.running() || !inc.mayLose(1) {
			return nil, false
		}
		inc.halt(f.For)
		return nil, true
	}
	g := inc.guard
	if g == nil {
		return nil, false
	}
	s := g.seats[f.N%2]
	if s == nil || !s.running() {
		return nil, false
	}
	switch {
	case f.Kind == KillGuardian && inc.mayLose(1):
		w.say("%s: guardian %d is killed", n.name, s.index+1)
		s.die()
	case f.Kind == KillGuardians && inc.mayLose(2) && inc.running() && g.seats[1-f.N%2] != nil:
		w.say("%s: both guardians are killed", n.name)
		s.die()
		g.seats[1-f.N%2].die()
	case f.Kind == FreezeGuardian && inc.mayLose(1):
		w.say("%s: guardian %d freezes for %v", n.name, s.index+1, f.For)
		s.freeze()
		w.after(f.For, func() {
			w.say("%s: guardian %d thaws", n.name, s.index+1)
			s.thaw()
			s.wake()
		})
	default:
		return nil, false
	}
	return nil, true
}

// disturbLink cuts or slows what lies between a host and servers.
func (w *world) disturbLink(f Fault) (end func()) {
	host := w.nodes[f.Node].host.index
	var servers []int
	for n := range w.plan.Servers {
		if f.Server < 0 || f.Server == n {
			servers = append(servers, n)
		}
	}
	set := func(sign int) {
		for _, s := range servers {
			w.net.change(host, s, func(l *link) {
				switch {
				case f.Kind == SlowLink:
					l.up.slow += time.Duration(sign) * f.slowness()
					l.down.slow += time.Duration(sign) * f.slowness()
				case f.Way == cutReset:
					l.refuses += sign
				default:
					if f.Way != cutDown {
						l.up.cut += sign
					}
					if f.Way != cutUp {
						l.down.cut += sign
					}
				}
			})
			if sign > 0 && f.Kind == CutLink && f.Way == cutReset {
				w.net.reset(host, s)
			}
		}
	}
	w.say("%v", f)
	set(1)
	return func() { w.say("over: %v", f); set(-1) }
}

// split parts a server and some hosts from the other servers and hosts.
func (w *world) split(f Fault) (end func(), done bool) {
	alone := f.N % w.plan.Servers
	w.say("%v", f)
	undo := w.zk.ensemble.Isolate(alone)
	set := func(sign int) {
		for _, h := range w.hosts {
			for s := range w.plan.Servers {
				if (s == alone) == (f.N/8>>h.index&1 == 1) {
					continue
				}
				w.net.change(h.index, s, func(l *link) {
					l.up.cut += sign
					l.down.cut += sign
				})
			}
		}
	}
	set(1)
	return func() { w.say("over: %v", f); undo(); set(-1) }, true
}

// activeNode is a node that runs a child, or the one given.
func (w *world) activeNode(other int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, name := range w.plan.services() {
		for _, n := range w.nodes {
			for p := range w.check.services[name].living {
				if p.tree.node == n.name {
					return n.index
				}
			}
		}
	}
	return other
}
