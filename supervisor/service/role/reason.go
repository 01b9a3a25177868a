package role

import "understudy/election"

// Reasons for a role that end no activation. The log, HTTP and other nodes show them.
const (
	SessionOpened  election.Reason = "session opened"
	SessionOver    election.Reason = "session over"
	TermTakenOver  election.Reason = "taken over"
	LockWasFree    election.Reason = "lock free"
	LockTaken      election.Reason = "lock taken"
	LockWon        election.Reason = "lock won"
	LockGivenBack  election.Reason = "lock released"
	NobodyElse     election.Reason = "no other node runs it"
	MayBeAlive     election.Reason = "the previous node's program may be alive"
	Rested         election.Reason = "waited after a failure"
	ServicePaused  election.Reason = "service paused"
	ServiceResumed election.Reason = "service resumed"
	WatchdogFailed election.Reason = "watchdog not armed"
	CopyUnfit      election.Reason = "copy not promoted"
	CopyBehind     election.Reason = "another copy may be newer"
	ClaimFailed    election.Reason = "claim failed"
	TermHandedOver election.Reason = "given to the next version"
)

var kindReasons = map[EventKind]election.Reason{
	StayOver: SessionOver, LockFree: LockWasFree, Taken: LockTaken, Won: LockWon, Armed: NobodyElse, PreviousAlive: MayBeAlive,
	LockLost: election.LockLost, LeaseEnding: election.LeaseEnding, LeaseOver: election.LeaseEnding, StopAsked: election.StopAsked,
	HandAsked: election.StopAsked, NotHandedOver: election.StopAsked, Done: election.ChildDone, Failed: election.ChildFailed,
	RanOnce: election.ChildOnce, Released: LockGivenBack, PauseAsked: ServicePaused, PreferredBack: election.PreferredBack,
	NotReachable: election.NotReachable, HookFailed: election.HookFailed, NotUndone: election.UndoFailed, Unarmed: WatchdogFailed,
	NoCopy: CopyUnfit, Behind: CopyBehind, Yielded: election.ChildFailed, SwitchAsked: election.SwitchAsked,
	RestartAsked: election.RestartAsked, StopOrdered: election.StopOrdered, HandedOver: TermHandedOver,
	Expired: election.SessionExpired, Trouble: ClaimFailed, HeldBack: ServicePaused, Allowed: ServiceResumed,
}

// Why is the reason of an event in any place: of a term's end, for example.
func (k EventKind) Why() election.Reason { return kindReasons[k] }

// Why is the reason of a step from one role to another.
func Why(was, now State, e Event) election.Reason {
	switch {
	case e.Kind == Opened:
		return TermTakenOver
	case was.Place == UndoingOld && now.Place == Joining:
		return SessionOpened
	case was.Place == BackOff && e.Kind == Waited:
		return Rested
	case was.Role() == election.RolePaused && now.Role() == election.RoleStandby:
		return ServiceResumed
	case now.Place == Away && e.Kind != HandedOver:
		return SessionOver
	case now.Role() == election.RoleStopping: // even if the event is no reason
		return now.Cause.Why()
	}
	return e.Kind.Why()
}
