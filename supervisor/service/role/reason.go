package role

// Reason is what led to a role, or ended a term, as the log, the history and others are told.
type Reason uint8

// The reasons.
const (
	NoReason Reason = iota
	ReasonOpened
	ReasonOver
	ReasonFree
	ReasonTaken
	ReasonWon
	ReasonAlone
	ReasonAlive
	ReasonLost
	ReasonEnding
	ReasonStop
	ReasonDone
	ReasonFailed
	ReasonRanOnce
	ReasonReleased
	ReasonRested
	ReasonPaused
	ReasonResumed
	ReasonPreferred
	ReasonHook
	ReasonUnarmed
	ReasonSwitchover
	ReasonClaimFailed
	ReasonHandedOver
	ReasonTakenOver
	ReasonExpired
	reasons
)

var reasonNames = [reasons]string{
	"session opened", "session opened", "session over", "lock free", "lock taken", "lock won", "nobody else runs", "former active may be alive",
	"lock lost", "lease ending", "stop asked", "child done", "child failed", "child ran once", "lock released", "rested", "service paused",
	"service resumed", "preferred node back", "on_active failed", "watchdog not armed", "switchover", "claim failed", "handed over", "taken over",
	"session expired",
}

func (r Reason) String() string { return reasonNames[r] }

// ParseReason is String's reverse; what is not known is NoReason.
func ParseReason(s string) Reason {
	for r := ReasonOpened; r < reasons; r++ {
		if reasonNames[r] == s {
			return r
		}
	}
	return NoReason
}

// Planned tells whether somebody wanted the end that it is the reason of.
func (r Reason) Planned() bool {
	return r == ReasonStop || r == ReasonPreferred || r == ReasonSwitchover
}

var kindReasons = map[Kind]Reason{
	StayOver: ReasonOver, LockFree: ReasonFree, Taken: ReasonTaken, Won: ReasonWon, Armed: ReasonAlone, FormerAlive: ReasonAlive, LockLost: ReasonLost,
	LeaseEnding: ReasonEnding, LeaseOver: ReasonEnding, StopAsked: ReasonStop, HandAsked: ReasonStop, NotHandedOver: ReasonStop, Done: ReasonDone,
	Failed: ReasonFailed, RanOnce: ReasonRanOnce, Released: ReasonReleased, PauseAsked: ReasonPaused, PreferredBack: ReasonPreferred,
	HookFailed: ReasonHook, Unarmed: ReasonUnarmed, SwitchAsked: ReasonSwitchover, HandedOver: ReasonHandedOver, Expired: ReasonExpired,
	Trouble: ReasonClaimFailed, HeldBack: ReasonPaused, Allowed: ReasonResumed,
}

// Why is the reason of an event wherever it comes: of a term's end, say.
func (k Kind) Why() Reason { return kindReasons[k] }

// Why is the reason of a step from one role to another.
func Why(was, now State, e Event) Reason {
	switch {
	case e.Kind == Opened:
		return ReasonTakenOver
	case was.Place == UndoingOld && now.Place == Joining:
		return ReasonOpened
	case was.Place == BackOff && e.Kind == Waited:
		return ReasonRested
	case was.Role() == RolePaused && now.Role() == RoleStandby:
		return ReasonResumed
	case now.Place == Away && e.Kind != HandedOver:
		return ReasonOver
	}
	return e.Kind.Why()
}
