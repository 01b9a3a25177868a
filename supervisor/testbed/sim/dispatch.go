package sim

import (
	"time"

	"understudy/election"
)

// strike lets a fault happen. What it returns, unless nil, ends it. It reports false when the fault would break the rules.
type strike func(f Fault) (end func(), done bool)

// hostStrike is a strike at a node's host. World.mu is held, as it is when the fault ends.
type hostStrike func(f Fault, n *node) (end func(), done bool)

// dispatch says, for each kind of fault, how it strikes.
func (ne *nemesis) dispatch() map[Kind]strike {
	hf, lf, sf, st, op, ps := &ne.hosts, &ne.links, &ne.servers, &ne.strangers, &ne.operator, &ne.programs
	host, supervisor := ne.onHost, ne.onSupervisor
	return map[Kind]strike{
		// the ensemble and its data
		LoseEnsemble: sf.loseEnsemble, RegrantSessions: sf.regrant, RewindData: sf.rewind, RestartServer: sf.restart, LoseData: sf.loseData,
		ChangeServers: sf.changeServers, IsolateServer: sf.disturbEnsemble, CutServers: sf.disturbEnsemble, SlowServers: sf.disturbEnsemble,
		ForgetSessions: func(f Fault) (func(), bool) { return sf.forget(f), true },
		NewLeader: once(func(Fault) bool {
			sf.say("zk: a new leader")
			sf.zk.newLeader()
			return true
		}),
		BreakReply: once(func(f Fault) bool {
			sf.say("%v", f)
			sf.breakReply(f)
			return true
		}),

		// links
		CutLink:      func(f Fault) (func(), bool) { return lf.disturbLink(f), true },
		SlowLink:     func(f Fault) (func(), bool) { return lf.disturbLink(f), true },
		SplitNetwork: lf.split, IsolateUnheard: lf.ambush,

		// strangers and operators
		KeepSession: st.haunt, EndSession: st.meddle, PauseService: op.pauseService, GiveOrder: op.giveOrder,
		DrainNode: op.drain, ForgetName: op.forget, ConfirmDeath: op.confirm, ConfirmAlive: op.confirm, DoAsTold: op.obeyed,
		DeleteLock:    once(func(f Fault) bool { return op.deleteLock(ne.serviceOf(f)) }),
		WriteFolder:   once(func(f Fault) bool { return op.writeFolder(f, ne.serviceOf(f)) }),
		DeleteService: once(func(f Fault) bool { return op.deleteService(ne.serviceOf(f)) }),
		DeleteNode: once(func(f Fault) bool {
			op.operate(root + "/nodes/" + ne.nodes[f.Node].name)
			return true
		}),
		DeleteCrumb: once(func(f Fault) bool {
			paths := election.Paths{Root: root, Service: ne.serviceOf(f)}
			may := op.mayStrike(paths.Service, paths.Crumb())
			if may {
				op.operate(paths.Crumb())
			}
			return may
		}),
		ChangeConfig: host(func(f Fault, _ *node) (func(), bool) { return op.reconfigure(f) }),

		// hosts and programs
		PowerOff: host(func(_ Fault, n *node) (func(), bool) {
			n.host.powerOff()
			return n.host.powerOn, true
		}),
		DeleteInFencing: host(hf.waylay), DeleteInStopping: host(hf.waylay), StopInFencing: host(hf.waylay), LateInscription: host(hf.waylay),
		StickProcesses: host(func(f Fault, n *node) (func(), bool) { return hf.stick(f, n), true }),
		KillChild: host(func(_ Fault, n *node) (func(), bool) {
			hf.killChildren(n.host)
			return nil, true
		}),
		SpoilWatchdog: host(func(_ Fault, n *node) (func(), bool) { return hf.spoilWatchdog(n) }),
		HangService: host(func(f Fault, n *node) (func(), bool) {
			hf.hang(f, n)
			return nil, true
		}),
		BadProgram: host(func(f Fault, _ *node) (func(), bool) {
			s := ne.serviceOf(f)
			ps.spoil(s, &trouble{life: time.Duration(1+f.N%50) * 20 * time.Millisecond, code: f.N / 64 % 2, absent: f.N/128%4 == 0,
				side: f.N/512%2 == 0 && ne.plan.Programs > 1})
			return func() { ps.mend(s) }, true
		}),
		SickHelper: host(func(f Fault, _ *node) (func(), bool) { return ps.sicken(f) }),
		HidePrimary: host(func(f Fault, n *node) (func(), bool) {
			return ne.copies.hide(ne.serviceOf(f), n, 1+f.N/8%ne.plan.Nodes), true
		}),
		BadNotes: host(hf.failDisk), NamesAway: host(hf.loseNames), AgentLies: host(hf.lie), LoseDevice: host(hf.loseDevice),
		BadUndo: host(func(f Fault, _ *node) (func(), bool) { return ps.failUndo(f) }),

		// supervisors and guardians
		StopSupervisor: supervisor(func(_ Fault, n *node) (func(), bool) {
			n.inc.asked = true
			go n.inc.stop()
			return n.start, true
		}),
		FreezeTree: supervisor(hf.freezeTree), RemoveTree: supervisor(hf.removeTrees), MoveProcess: supervisor(hf.moveProcesses),
		UpgradeSupervisor: supervisor(hf.upgrade), MixVersions: supervisor(hf.upgradeBeyond),
		TrapFreeze: supervisor(hf.setTrap), TrapCrash: supervisor(hf.setTrap), TrapCut: supervisor(hf.setTrap),
		CrashSupervisor: supervisor(func(_ Fault, n *node) (func(), bool) {
			if !n.inc.mayLose(1) {
				return nil, false
			}
			hf.say("%s: supervisor %d is killed", n.name, n.inc.number)
			n.crash(true)
			return n.start, true
		}),
		FreezeSupervisor: supervisor(func(f Fault, n *node) (func(), bool) {
			if !n.inc.running() || !n.inc.mayLose(1) {
				return nil, false
			}
			n.inc.halt(f.For)
			return nil, true
		}),
		StandStill:   supervisor(func(f Fault, n *node) (func(), bool) { return nil, hf.standStill(f, n.inc) }),
		FreezeAll:    supervisor(func(f Fault, n *node) (func(), bool) { return nil, hf.freezeAll(f, n.inc) }),
		KillGuardian: supervisor(hf.disturbGuardian), KillGuardians: supervisor(hf.disturbGuardian), FreezeGuardian: supervisor(hf.disturbGuardian),
	}
}

// serviceOf is the service that a fault is about, if it is about one.
func (w *world) serviceOf(f Fault) string { return w.plan.services()[f.N%w.plan.Services] }

// once is a strike that has no end.
func once(do func(f Fault) (done bool)) strike {
	return func(f Fault) (func(), bool) { return nil, do(f) }
}

func (ne *nemesis) onHost(do hostStrike) strike {
	return func(f Fault) (func(), bool) {
		ne.mu.Lock()
		defer ne.mu.Unlock()
		undo, done := do(f, ne.nodes[f.Node])
		if undo == nil {
			return nil, done
		}
		return func() {
			ne.mu.Lock()
			defer ne.mu.Unlock()
			undo()
		}, done
	}
}

// onSupervisor is onHost while a supervisor runs there.
func (ne *nemesis) onSupervisor(do hostStrike) strike {
	return ne.onHost(func(f Fault, n *node) (func(), bool) {
		if n.inc == nil {
			return nil, false
		}
		return do(f, n)
	})
}

// waylay keeps a fault for the moment at which somebody is fencing, or stops.
func (hf *hostFaults) waylay(f Fault, n *node) (end func(), done bool) {
	hf.lieInWait(hf.serviceOf(f), f)
	if inc := n.inc; f.Kind == DeleteInStopping && inc != nil { // so that its moment comes
		inc.asked = true
		go inc.stop()
		return n.start, true
	}
	return nil, true
}

// setTrap arms a trap.
func (hf *hostFaults) setTrap(f Fault, n *node) (end func(), done bool) {
	t := &trap{kind: f.Kind, at: moment(f.N % int(moments)), again: f.For}
	switch f.Kind {
	case TrapFreeze:
		t.freeze = f.For + 1
	case TrapCut: // a request is about to be sent, or its answer to be read
		t.at = beforeWrite + moment(f.N%2)
		t.cut = &Fault{Kind: CutLink, Node: n.index, Server: -1, Way: f.Way, For: f.For}
	}
	n.arm(t)
	if t.at < beforeWrite && f.N/8%2 == 0 { // so that its moment comes
		hf.killChildren(n.host)
	}
	return nil, true
}

// disturbGuardian kills or freezes guardians, unless that leaves too few.
func (hf *hostFaults) disturbGuardian(f Fault, n *node) (end func(), done bool) {
	inc := n.inc
	g := inc.guard
	if g == nil {
		return nil, false
	}
	s := g.guardians[f.N%2]
	if s == nil || !s.running() {
		return nil, false
	}
	switch {
	case f.Kind == KillGuardian && inc.mayLose(1):
		hf.say("%s: guardian %d is killed", n.name, s.index+1)
		s.die()
	case f.Kind == KillGuardians && inc.mayLose(2) && inc.running() && g.guardians[1-f.N%2] != nil:
		hf.say("%s: both guardians are killed", n.name)
		s.die()
		g.guardians[1-f.N%2].die()
	case f.Kind == FreezeGuardian && inc.mayLose(1):
		s.halt(f.For)
	default:
		return nil, false
	}
	return nil, true
}
