package sim

import (
	"slices"
	"strings"
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
	WriteFolder      Kind = "service's folder written by hand"
	DeleteService    Kind = "service's znodes deleted by hand"
	StickProcesses   Kind = "processes held by the kernel"
	TrapFreeze       Kind = "supervisor frozen at a moment"
	TrapCrash        Kind = "supervisor killed at a moment"
	TrapCut          Kind = "links cut at a moment"
	DeleteInFencing  Kind = "lock deleted while fencing"
	LateInscription  Kind = "supervisor frozen before it inscribes, its lock gone"
	DeleteInStopping Kind = "lock deleted while a child stops"
	StopInFencing    Kind = "supervisor asked to stop while fencing"
	BadProgram       Kind = "program fails"
	KillChild        Kind = "child killed"
	IsolateServer    Kind = "server cut off from the others"
	CutServers       Kind = "servers cut one way"
	SlowServers      Kind = "servers slow one way"
	SplitNetwork     Kind = "network split"
	PauseService     Kind = "service paused"
	GiveOrder        Kind = "operator's order"
	ChangeConfig     Kind = "config changed"
	SickHelper       Kind = "health check, precheck or hook fails"
	LoseEnsemble     Kind = "whole ensemble out of sight"
	IsolateUnheard   Kind = "server cut off between a write and its ping"

	EndSession Kind = "session ended by a stranger" // see Plan.strangers

	UpgradeSupervisor Kind = "supervisor becomes another image" // see Plan.upgrades

	KeepSession Kind = "session kept by a stranger" // see Plan.keepers

	FreezeAll     Kind = "supervisor and both guardians frozen at once" // see Plan.watchdogs, as for the next
	SpoilWatchdog Kind = "watchdog held by another program"

	BadUndo Kind = "undo fails" // see Plan.effects

	StandStill Kind = "machine stands still" // see Plan.standstills

	HangService Kind = "goroutine of a service hangs" // see Plan.hangs

	RewindData Kind = "data set back to an older copy" // see Plan.rewinds

	ForgetSessions Kind = "server gives another session at a reconnect" // see Plan.forgets

	HidePrimary Kind = "primary not reachable for other nodes" // see Plan.hides

	RegrantSessions Kind = "server restarted that grants other timeouts" // see Plan.grants

	FreezeTree Kind = "cgroup frozen by another tool" // see Plan.otherTools, as for the next
	RemoveTree Kind = "empty cgroup removed by another tool"

	MoveProcess Kind = "processes moved into another cgroup" // see Plan.moves

	ChangeServers Kind = "servers changed by reconfiguration" // see Plan.members

	MixVersions Kind = "word that a guardian of the revision before does not know" // see Plan.versions

	BadNotes Kind = "disk of notes fails" // see Plan.badNotes

	NamesAway Kind = "name server away" // see Plan.names

	DrainNode    Kind = "node drained" // see Plan.commands, as for the next
	ForgetName   Kind = "service or node forgotten"
	ConfirmDeath Kind = "death confirmed"
	ConfirmAlive Kind = "death confirmed of what lives"

	DoAsTold Kind = "operator who does what status says" // see Plan.obeys

	AgentLies Kind = "agent answers anything" // see Plan.lies

	LoseDevice Kind = "device away" // see Plan.devices
)

var allKinds = []Kind{
	CrashSupervisor, FreezeSupervisor, StopSupervisor, KillGuardian, KillGuardians, FreezeGuardian, PowerOff, CutLink, CutLink, CutLink, SlowLink,
	RestartServer, NewLeader, BreakReply, BreakReply, LoseData, DeleteLock, DeleteCrumb, DeleteNode, WriteFolder, DeleteService, StickProcesses, TrapFreeze, TrapFreeze,
	TrapCrash, TrapCrash, TrapCut, TrapCut, DeleteInFencing, DeleteInStopping, StopInFencing, LateInscription, BadProgram, BadProgram, KillChild, IsolateServer, IsolateServer, IsolateServer, IsolateServer, IsolateServer, CutServers, SlowServers,
	SplitNetwork, SplitNetwork, IsolateUnheard, IsolateUnheard,
	PauseService, PauseService, GiveOrder, GiveOrder, GiveOrder, ChangeConfig, ChangeConfig, ChangeConfig, SickHelper, SickHelper, SickHelper,
}

var calmKinds = []Kind{RestartServer, NewLeader, CutLink, KillGuardian, FreezeSupervisor, FreezeGuardian, BreakReply,
	IsolateServer, CutServers, SlowServers, PauseService, ChangeConfig, WriteFolder}

// Kinds is every kind once.
func Kinds() (kinds []Kind) {
	for _, k := range append([]Kind{LoseEnsemble}, allKinds...) {
		if !slices.Contains(kinds, k) {
			kinds = append(kinds, k)
		}
	}
	return append(kinds, EndSession, UpgradeSupervisor, KeepSession, FreezeAll, SpoilWatchdog, RegrantSessions, HangService, ForgetSessions, RewindData, BadUndo, StandStill, HidePrimary, BadNotes, FreezeTree, RemoveTree, NamesAway, MoveProcess, ChangeServers, MixVersions,
		DrainNode, ForgetName, ConfirmDeath, ConfirmAlive, DoAsTold, AgentLies, LoseDevice)
}

// waits tells whether such a fault waits for its moment, which may not come, and counts only then.
func (k Kind) waits() bool {
	return k == TrapFreeze || k == TrapCrash || k == TrapCut || k == DeleteInFencing || k == StopInFencing || k == LateInscription || k == DeleteInStopping ||
		k == IsolateUnheard || strings.HasPrefix(string(k), string(HangService)) || k == RewindData || k == ForgetName || k == ConfirmDeath || k == ConfirmAlive || k == RemoveTree || k == NamesAway || k == ChangeServers || k == MixVersions || k == DoAsTold
}

// kinds is what may happen in this plan.
func (p *Plan) kinds() (kinds []Kind) {
	if p.Calm && !slices.Contains(p.Failsafe, false) { // P7: their children do not notice that either
		return append([]Kind{LoseEnsemble, LoseEnsemble}, calmKinds...)
	}
	if p.Calm {
		return calmKinds
	}
	if p.outages() {
		kinds = slices.Repeat([]Kind{LoseEnsemble}, 15)
	}
	for _, k := range allKinds {
		if p.Servers == 1 && (k == IsolateServer || k == CutServers || k == SlowServers || k == SplitNetwork || k == IsolateUnheard) {
			continue
		}
		if !p.Helpers && k == SickHelper {
			continue
		}
		kinds = append(kinds, k)
	}
	return kinds
}
