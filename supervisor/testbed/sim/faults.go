package sim

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"understudy/election/jute"
)

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
	case RestartServer, RegrantSessions, ForgetSessions:
		return fmt.Sprintf("%s: %s, for %v", f.Kind, server, d)
	case NewLeader, LoseData:
		return string(f.Kind)
	case SplitNetwork:
		return fmt.Sprintf("%s: zk%d and hosts %04b from the rest, for %v", f.Kind, f.N%3+1, f.N/8%16, d)
	case LoseEnsemble:
		way, twist := f.loss()
		return fmt.Sprintf("%s: %s%s, for %v", f.Kind, lossNames[way], twistNames[twist], d)
	case IsolateServer, CutServers, SlowServers:
		from, to := f.between(3)
		return fmt.Sprintf("%s: zk%d (to zk%d), for %v", f.Kind, from+1, to+1, d)
	case TrapFreeze, TrapCrash, TrapCut:
		return fmt.Sprintf("%s: %s, %s, for %v", f.Kind, node, momentNames[f.N%int(moments)], d)
	case EndSession:
		return fmt.Sprintf("%s: %s, %s, for %v", f.Kind, node, f.stranger(), d)
	case StickProcesses:
		return fmt.Sprintf("%s: %s, for %v, with %q", f.Kind, node, d, f.with())
	case BadNotes:
		return fmt.Sprintf("%s: %s, %s, for %v", f.Kind, node, diskNames[f.N%diskWays], d)
	case ChangeServers:
		return fmt.Sprintf("%s: %s", f.Kind, f.memberWords())
	case NamesAway:
		return fmt.Sprintf("%s: %s, %s, for %v", f.Kind, node, f.nameless(), d)
	case SickHelper:
		return fmt.Sprintf("%s: %s, for %v", f.Kind, f.ailment(), d)
	case KeepSession:
		return fmt.Sprintf("%s: %s, with %q for %v", f.Kind, node, f.silencedBy(), d)
	case GiveOrder:
		return fmt.Sprintf("%s: %s, waited for %v", f.Kind, orderNames[f.Way%len(orderNames)], d)
	case ChangeConfig:
		return fmt.Sprintf("%s: %s, %s, for %v", f.Kind, node, editNames[f.Way], d)
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
	if f.N/512%4 == 0 && ops[f.N%len(ops)] > 0 { // not what opens or closes a session
		return ops[f.N%len(ops)], refusals[f.N/2048%len(refusals)].Error()
	}
	return ops[f.N%len(ops)], []string{"close before", "close after", "loss of the reply"}[f.N/16%3]
}

// refusals are codes that the client library does not know.
var refusals = []jute.Code{jute.QuotaExceeded, jute.ThrottledOp, jute.MarshallingError, -999}

// begin lets a fault happen. What it returns, unless nil, ends it. It reports false when the fault would break the rules.
func (ne *nemesis) begin(f Fault) (end func(), done bool) {
	if f.Active {
		f.Node, f.Active = ne.activeNode(f.Node), false
		if f.Kind == IsolateServer {
			f.N += ne.net.serverOf(ne.nodes[f.Node].host.index, ne.plan.all()) - f.N%ne.plan.all()
		}
	}
	return ne.dispatch()[f.Kind](f)
}

func (hf *hostFaults) killChildren(h *host) {
	for _, name := range slices.Sorted(maps.Keys(h.trees)) {
		for _, p := range h.trees[name].all() {
			if p.program != "" {
				p.shot = true
				p.kill()
			}
		}
	}
}

// with is what comes together with processes that are held by the kernel: something that has them killed.
func (f Fault) with() Kind {
	return []Kind{CrashSupervisor, CutLink, CrashSupervisor, StopSupervisor, ChangeConfig}[f.N%5]
}

// stick has the kernel hold processes that are killed. World.mu is held.
func (hf *hostFaults) stick(f Fault, n *node) (end func()) {
	n.host.stuck = time.Now().Add(f.For)
	hf.say("%v", f)
	t := hf.plan.Timeout
	cut := Fault{Kind: CutLink, Node: n.index, Server: -1, For: t/2 + time.Duration(f.N/4%100)*t/100}
	switch f.with() {
	case CutLink: // until the lease has ended and the session has not, or longer
		hf.nemesis.links.cutFor(cut)
	case ChangeConfig: // it is not there any more when the next session comes, and then is again, and the death not yet proved
		hf.nemesis.links.cutFor(cut)
		if end, done := hf.operator.reconfigure(Fault{Kind: ChangeConfig, Node: n.index, Way: removeHere, N: f.N}); done {
			end = sync.OnceFunc(end)
			hf.after(f.For*3/4, end)
			return end
		}
	case StopSupervisor:
		if n.inc != nil {
			n.inc.asked = true
			go n.inc.stop()
			return n.start
		}
	default:
		if n.inc != nil && n.inc.mayLose(1) {
			n.crash(true)
			hf.after(f.For*time.Duration(f.N/4%4)/3, n.start)
			return n.start
		}
	}
	return nil
}

// cutFor cuts links for a while, or until all is healed. World.mu is held.
func (lf *linkFaults) cutFor(f Fault) {
	end := sync.OnceFunc(lf.disturbLink(f))
	lf.endLater(end)
	time.AfterFunc(f.For, end)
}

// disturbLink cuts or slows what lies between a host and servers.
func (lf *linkFaults) disturbLink(f Fault) (end func()) {
	here := lf.nodes[f.Node].host.index
	var servers []int
	for n := range lf.plan.all() {
		if f.Server < 0 || f.Server == n {
			servers = append(servers, n)
		}
	}
	set := func(sign int) {
		for _, s := range servers {
			lf.net.change(here, s, func(l *link) {
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
				lf.net.reset(here, s)
			}
		}
	}
	lf.say("%v", f)
	set(1)
	if f.Kind != CutLink || f.Server >= 0 || f.N/32%2 == 0 {
		return func() { lf.say("over: %v", f); set(-1) }
	}
	lf.say("its cable is pulled: no other host reaches it either")
	self := func(h *host) bool { return h.index == here }
	lf.part(self, 1)
	return func() { lf.say("over: %v", f); set(-1); lf.part(self, -1) }
}

// split parts a server and some hosts from the other servers and hosts.
func (lf *linkFaults) split(f Fault) (end func(), done bool) {
	alone := f.N % lf.plan.all()
	lf.say("%v", f)
	undo := lf.zk.ensemble.Isolate(alone)
	set := func(sign int) {
		for _, h := range lf.hosts {
			for s := range lf.plan.all() {
				if (s == alone) == (f.N/8>>h.index&1 == 1) {
					continue
				}
				lf.net.change(h.index, s, func(l *link) {
					l.up.cut += sign
					l.down.cut += sign
				})
			}
		}
	}
	side := func(h *host) bool { return f.N/8>>h.index&1 == 1 }
	set(1)
	lf.part(side, 1)
	return func() { lf.say("over: %v", f); undo(); set(-1); lf.part(side, -1) }, true
}

// activeNode is a node that runs a child, or the one given.
func (ne *nemesis) activeNode(other int) int {
	ne.mu.Lock()
	defer ne.mu.Unlock()
	for _, name := range ne.plan.services() {
		for _, n := range ne.nodes {
			for p := range ne.check.services[name].living {
				if p.tree.node == n.name {
					return n.index
				}
			}
		}
	}
	return other
}
