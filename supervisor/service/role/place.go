package role

import "understudy/election"

// Place is where a service is on this node. It is finer than the role that other nodes and operators see.
type Place uint8

// The places.
const (
	Away        Place = iota // in no session
	EndingOld                // ending, with proof, the processes that a previous session or supervisor left alive
	UndoingOld               // undoing their effects
	Joining                  // this node becomes a candidate for the service
	Retrying                 // a pause before it tries again
	Quarantined              // ZooKeeper has lost its data: waiting until every earlier lease is over
	Resuming                 // continuing a term that was handed over
	BackOff                  // gave up: other nodes may try
	Preparing                // making a tree, so that a failover need not
	Standby                  // waiting for the lock
	Blocked                  // State.Obstacle keeps this node from being a candidate
	Deferring                // leaving a free lock to a preferred node
	Claiming                 // taking the lock
	Fencing                  // the lock is ours, but the previous active is not known to be dead
	Arming                   // the lease's gate and the watchdog, then the start
	Running                  // the programs run
	HandingOver              // another image of this process takes over with them
	Stopping                 // asking the programs to end
	Clearing                 // killing leftover processes; the programs may start again in the same tree
	Proving                  // ending the tree, with proof
	Undoing                  // undoing the programs' effects
	Judging                  // the programs ended by themselves: the restart policy decides
	Waiting                  // a pause before the programs start again here
	Releasing                // giving the lock back
	Recording                // writing the history's entry
	Discarding               // ending, with proof, a tree in which nothing was started
	Places
)

var placeNames = [Places]string{
	"Away", "EndingOld", "UndoingOld", "Joining", "Retrying", "Quarantined", "Resuming", "BackOff", "Preparing", "Standby", "Blocked",
	"Deferring", "Claiming", "Fencing", "Arming", "Running", "HandingOver", "Stopping", "Clearing", "Proving", "Undoing", "Judging",
	"Waiting", "Releasing", "Recording", "Discarding",
}

func (p Place) String() string { return placeNames[p] }

// set is a set of places. The order of the constants means nothing.
type set uint32

func setOf(places ...Place) (s set) {
	for _, p := range places {
		s |= 1 << p
	}
	return s
}

func (s set) has(p Place) bool { return s>>p&1 == 1 }

// Each place is in one of these sets. A function of step.go handles each set.
var (
	arriving  = setOf(Away, EndingOld, UndoingOld, Joining, Retrying, Quarantined, Resuming, BackOff)
	unstarted = setOf(Preparing, Standby, Blocked, Deferring, Claiming, Discarding)
	holding   = setOf(Fencing, Arming, Running, HandingOver)
	ending    = setOf(Stopping, Clearing, Proving, Undoing, Judging, Waiting, Releasing, Recording)
)

// Others for which a set of places counts.
var (
	withTree = unstarted&^setOf(Preparing) | holding | ending | setOf(Resuming)
	joined   = withTree | setOf(Quarantined, BackOff, Preparing)
	stands   = setOf(Standby, Blocked, Deferring, Claiming)
	proofs   = setOf(EndingOld, Proving, Discarding)
)

// HasTree reports whether there is a tree: another node may have it ended, and this candidacy or term with it.
func (p Place) HasTree() bool { return withTree.has(p) }

// Joined tells whether this node is a candidate, or a term goes on or ends.
func (p Place) Joined() bool { return joined.has(p) }

// Stands reports whether it is a candidate for the lock, or would be without its obstacle.
func (p Place) Stands() bool { return stands.has(p) }

// Obstacle is why a node is no candidate.
type Obstacle uint8

// The obstacles, the strongest first.
const (
	NoObstacle      Obstacle = iota
	Ineligible               // by its config
	OrdersUnknown            // the operators' orders are not known yet
	Paused                   // by an operator
	Drained                  // the node is, by an operator
	PrecheckUnknown          // the precheck has not run yet, or what the machine lacks is not known yet
	CannotStart              // the precheck failed, or the machine lacks something
	WatchdogUnknown          // it is not known yet whether the watchdog can be armed
	WatchdogUnarmed          // it cannot
)

// Unknown reports whether the answer will be known soon: meanwhile the candidate keeps its place in the queue and its preference.
func (b Obstacle) Unknown() bool {
	return b == OrdersUnknown || b == PrecheckUnknown || b == WatchdogUnknown
}

// Role is the role that other nodes and operators see.
func (s State) Role() election.Role {
	switch s.Place {
	case Away, EndingOld, UndoingOld:
		return election.RoleOffline
	case Joining, Retrying, Quarantined, Resuming:
		switch {
		case s.Carried:
			return election.RoleActive
		case s.BackOffDue:
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
	if s.Obstacle == Paused {
		return election.RolePaused
	}
	return election.RoleStandby
}
