package role

// EventKind is what an action reports: a fact, in the past.
type EventKind uint8

// The kinds.
const (
	Opened   EventKind = iota // a session is open
	StayOver                  // the session, or this node's stay in it, is over
	Proved                    // no process is alive
	Unproved                  // and the service leaves without more patience, or the session is over
	Undone                    // all effects are undone
	// An effect is not, and the service leaves without more patience, or the session is over; in place: once it was tried.
	NotUndone
	Joined     // Event.DataLost
	JoinFailed // no candidate could be made
	Waited     // a pause is over, or its reason is
	Prepared
	Trouble     // a candidate does not work any more, or another node had its tree ended: a new one follows after a pause
	Reordered   // the config has another kind of election
	HeldBack    // Event.Obstacle
	Allowed     // no obstacle any more
	LockFree    // the lock is free; while blocked: it may be ours already
	LeftToOther // the lock is free, and another node is preferred
	Won
	Taken // another node was quicker
	Resumed
	CannotResume
	PreviousDead  // no other node's program runs, and the breadcrumb names us
	PreviousAlive // fencing was refused; Event.BackOffUntilProof
	PauseAsked
	Armed
	Unarmed // the watchdog, which is required, cannot be armed
	NoCopy  // this node's copy of a replicated service cannot be promoted
	Behind  // another copy is newer, or may be
	Ended   // a program ended by itself, or does not work
	Changed // the config or an operator requires a new start
	SwitchAsked
	RestartAsked // a primary is started again once the copies were compared
	StopOrdered
	PreferredBack
	NotReachable // other nodes do not reach the primary of a replicated service
	LockLost
	LeaseEnding // ZooKeeper acknowledges nothing
	LeaseOver   // the guardians have killed the programs
	Expired     // ZooKeeper has ended the session
	StopAsked
	HandAsked // another image of this process takes over
	Outlasted // ZooKeeper has ended the session, and promises cover the programs until the next one has the lock
	HandedOver
	NotHandedOver
	Stopped
	Again   // in place
	Yielded // a primary has failed, and the copies are compared before one is promoted
	Done    // the program has ended, and should not run here again for now
	Failed
	HookFailed
	RanOnce
	Released
	NotReleased
	Recorded
	Kinds
)

var kindNames = [Kinds]string{
	"Opened", "StayOver", "Proved", "Unproved", "Undone", "NotUndone", "Joined", "JoinFailed", "Waited", "Prepared", "Trouble",
	"Reordered", "HeldBack", "Allowed", "LockFree", "LeftToOther", "Won", "Taken", "Resumed", "CannotResume", "PreviousDead",
	"PreviousAlive", "PauseAsked", "Armed", "Unarmed", "NoCopy", "Behind", "Ended", "Changed", "SwitchAsked", "RestartAsked",
	"StopOrdered", "PreferredBack", "NotReachable", "LockLost", "LeaseEnding", "LeaseOver", "Expired", "StopAsked", "HandAsked",
	"Outlasted", "HandedOver", "NotHandedOver", "Stopped", "Again", "Yielded", "Done", "Failed", "HookFailed", "RanOnce", "Released",
	"NotReleased", "Recorded",
}

func (k EventKind) String() string { return kindNames[k] }

// Event is one fact.
type Event struct {
	Kind              EventKind
	Obstacle          Obstacle // HeldBack
	DataLost          bool     // Joined: ZooKeeper has lost its data since this node saw it last
	BackOffUntilProof bool     // PreviousAlive: the backoff may end as soon as its death is known
}

// Ends are the causes that may end a term in any place, several of them at the same time.
type Ends struct{ LockLost, LeaseOver, Expired, LeaseEnding, StayOver, Handing bool }

// Rank picks the one that counts: the one that allows the least comes first. It reports false when there is none.
func (e Ends) Rank() (Event, bool) {
	switch {
	case e.LeaseOver:
		return Event{Kind: LeaseOver}, true
	case e.Expired: // and the lock with it: LockLost would say less
		return Event{Kind: Expired}, true
	case e.LockLost:
		return Event{Kind: LockLost}, true
	case e.LeaseEnding:
		return Event{Kind: LeaseEnding}, true
	case e.StayOver && e.Handing:
		return Event{Kind: HandAsked}, true
	case e.StayOver:
		return Event{Kind: StopAsked}, true
	}
	return Event{}, false
}
