package role

import "understudy/election"

// Place is where a service is on this node. It is finer than the role that other nodes and operators see.
type Place uint8

// The places, in the order of a term.
const (
	Away        Place = iota // in no session
	EndingOld                // what a former session or supervisor left alive is ended, with proof
	UndoingOld               // what it did is undone
	Joining                  // this node becomes a candidate of the service
	Retrying                 // a pause before it tries again
	Quarantined              // ZooKeeper has lost its data: waiting until any lease of before is over
	Resuming                 // a term that was handed over goes on
	BackOff                  // gave up: others may try
	Preparing                // a tree is made, so that a failover finds it there
	Standby                  // waiting for the lock
	Barred                   // State.Bar keeps this node from being a candidate
	Deferring                // the lock is free, and left to a node that is preferred
	Claiming                 // taking the lock
	Fencing                  // the lock is ours, the former active not known to be dead
	Arming                   // the lease's gate and the watchdog, then the start
	Running                  // the programs run
	HandingOver              // another image of this process takes over with them
	Stopping                 // they are asked to end
	Clearing                 // what is left of them is killed; they may start again in the same tree
	Proving                  // the tree is ended, with proof
	Undoing                  // what the programs did is undone
	Judging                  // they ended by themselves: the restart policy says what follows
	Waiting                  // a pause before they start again here
	Releasing                // the lock is given back
	Recording                // the history gets its entry
	Discarding               // a tree in which nothing was started is ended, with proof
	Places
)

var placeNames = [Places]string{
	"Away", "EndingOld", "UndoingOld", "Joining", "Retrying", "Quarantined", "Resuming", "BackOff", "Preparing", "Standby", "Barred", "Deferring",
	"Claiming", "Fencing", "Arming", "Running", "HandingOver", "Stopping", "Clearing", "Proving", "Undoing", "Judging", "Waiting", "Releasing",
	"Recording", "Discarding",
}

func (p Place) String() string { return placeNames[p] }

// Treed tells whether a tree is there: somebody may have it ended, and with it this candidacy or term.
func (p Place) Treed() bool {
	switch p {
	case Resuming, Standby, Barred, Deferring, Claiming, Fencing, Arming, Running, HandingOver, Stopping, Clearing, Proving, Undoing, Judging,
		Waiting, Releasing, Recording, Discarding:
		return true
	}
	return false
}

// Joined tells whether this node is a candidate, or a term goes on or ends.
func (p Place) Joined() bool {
	return p == Quarantined || p == BackOff || p == Preparing || p.Treed()
}

// Stands tells whether it is a candidate for the lock, or would be without its bar.
func (p Place) Stands() bool { return p >= Standby && p <= Claiming }

// Bar is why a node is no candidate.
type Bar uint8

// The bars, the strongest first.
const (
	NoBar           Bar = iota
	Ineligible          // by its config
	Unasked             // what operators want is not known yet
	Paused              // by an operator
	Untested            // the precheck has not run yet
	Unfit               // the precheck failed
	WatchdogUnknown     // whether the watchdog can be armed is not known yet
	WatchdogUnarmed     // it cannot
)

// Unknown tells whether it will soon be known: nothing is taken back meanwhile.
func (b Bar) Unknown() bool { return b == Unasked || b == Untested || b == WatchdogUnknown }

// Role is what the other nodes and operators are told.
func (s State) Role() election.Role {
	switch s.Place {
	case Away, EndingOld, UndoingOld:
		return election.RoleOffline
	case Joining, Retrying, Quarantined, Resuming:
		switch {
		case s.Carried:
			return election.RoleActive
		case s.Failed:
			return election.RoleFailed
		}
	case BackOff:
		return election.RoleFailed
	case Claiming:
		return election.RoleClaiming
	case Fencing, Arming:
		return election.RoleFencing
	case Running, HandingOver, Waiting, Judging, Clearing:
		return election.RoleActive
	case Stopping, Proving, Undoing, Releasing:
		if s.Then == Judge {
			return election.RoleActive
		}
		return election.RoleStopping
	case Recording:
		switch s.Then {
		case Leave:
			return election.RoleOffline
		case GiveUp:
			return election.RoleFailed
		}
	}
	if s.Bar == Paused {
		return election.RolePaused
	}
	return election.RoleStandby
}
