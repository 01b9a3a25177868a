package supervisor

// role is where a service stands on this node.
type role uint8

// The roles, in the order of a term.
const (
	Offline  role = iota // no session with ZooKeeper
	Standby              // waiting for the lock
	Claiming             // the lock is free: taking it
	Fencing              // the lock is ours, the former active not known to be dead
	Active               // the child may run
	Stopping             // the child is being ended, the lock given back
	Failed               // gave up here: rests, so that another node can try
	Paused               // nobody is promoted, by an operator's order
)

var roleNames = [...]string{"offline", "standby", "claiming", "fencing", "active", "stopping", "failed", "paused"}

func (r role) String() string { return roleNames[r] }

// event is something that has happened.
type event uint8

const (
	sessionOpened  event = iota // a new session stands
	sessionOver                 // it cannot be trusted any more; all that ran under it is dead
	lockFree                    // the lock may be had
	lockTaken                   // somebody was quicker
	lockWon                     // the lock is ours
	formerDead                  // nobody else's child runs, and the breadcrumb names us
	formerAlive                 // fencing was refused
	lockLost                    // lock or breadcrumb is not ours any more
	leaseEnding                 // ZooKeeper acknowledges nothing
	stopAsked                   // this node is to leave
	childDone                   // the child has ended, and is not to run here again for now
	childFailed                 // the child failed too often
	childOnce                   // the child, which was to run once, has ended
	treeDead                    // proved: nothing of the child is alive
	treeAlive                   // not proved
	lockReleased                // lock and breadcrumb are gone
	rested                      // the rest after giving up is over
	servicePaused               // nobody is to be promoted
	serviceResumed              // and now again
	preferredBack               // a node that is preferred is fit
	hookFailed                  // on_active says that this node cannot do it
	unarmed                     // the watchdog, which is required, cannot be armed
	switchAsked                 // another node is to be active
	claimFailed                 // the lock could not be taken, for another reason than that it is another's
	handedOver                  // another image of this process goes on with the term
	takenOver                   // the term of a former image goes on
	sessionExpired              // ZooKeeper has ended the session: it was out of reach for too long, or so it was to the servers
)

var eventNames = [...]string{
	"session opened", "session over", "lock free", "lock taken", "lock won", "nobody else runs", "former active may be alive", "lock lost",
	"lease ending", "stop asked", "child done", "child failed", "child ran once", "tree dead", "tree may be alive", "lock released", "rested",
	"service paused", "service resumed", "preferred node back", "on_active failed", "watchdog not armed", "switchover",
	"claim failed", "handed over", "taken over", "session expired",
}

func (e event) String() string { return eventNames[e] }

// action is what is to be done next.
type action uint8

const (
	nothing     action = iota
	stand              // wait for the lock
	claim              // take it
	fence              // make sure of the former active's death
	startChild         // P5: only ever after formerDead
	stopChild          // end the tree, prove it
	releaseLock        // P2: only ever after treeDead; a breadcrumb that names somebody else stays
	keepLock           // P2: the session has to end by itself
	rest               // leave the lock to others for a while
	goOn               // with a term that was taken over
)

// state is a role and what has to be remembered until the term is over.
type state struct {
	role    role
	failed  bool // rest after this term
	leaving bool // this node stops after it
	dead    bool // Stopping: the tree is
}

// step is the whole of the role machine. A pair that is not expected is stale, and changes nothing.
func step(s state, e event) (state, action) {
	if e == sessionOver {
		return state{role: Offline, failed: s.failed}, nothing
	}
	switch s.role {
	case Offline:
		switch {
		case e == takenOver:
			return state{role: Active}, goOn
		case e == sessionOpened && s.failed:
			return state{role: Failed, failed: true}, rest
		case e == sessionOpened:
			return state{role: Standby}, stand
		}
	case Standby:
		switch e {
		case lockFree:
			return state{role: Claiming}, claim
		case servicePaused:
			return state{role: Paused}, nothing
		}
	case Paused:
		if e == serviceResumed {
			return state{role: Standby}, stand
		}
	case Claiming:
		switch e {
		case lockTaken, claimFailed:
			return state{role: Standby}, stand
		case lockWon:
			return state{role: Fencing}, fence
		}
	case Fencing:
		switch e {
		case formerDead:
			return state{role: Active}, startChild
		case formerAlive:
			return state{role: Stopping, failed: true}, stopChild
		case lockLost, leaseEnding, sessionExpired, stopAsked, unarmed, servicePaused:
			return state{role: Stopping, leaving: e == stopAsked}, stopChild
		}
	case Active:
		switch e {
		case childDone, childFailed, hookFailed:
			return state{role: Stopping, failed: true}, stopChild
		case lockLost, leaseEnding, sessionExpired, stopAsked, childOnce, preferredBack, switchAsked:
			return state{role: Stopping, leaving: e == stopAsked || e == childOnce}, stopChild
		case handedOver:
			return state{role: Offline}, nothing
		}
	case Stopping:
		switch e {
		case treeDead:
			s.dead = true
			return s, releaseLock
		case treeAlive:
			return s, keepLock
		case lockReleased:
			switch {
			case !s.dead: // P2: nothing was given back yet
				return s, nothing
			case s.leaving:
				return state{role: Offline}, nothing
			case s.failed:
				return state{role: Failed, failed: true}, rest
			}
			return state{role: Standby}, stand
		}
	case Failed:
		if e == rested {
			return state{role: Standby}, stand
		}
	}
	return s, nothing
}
