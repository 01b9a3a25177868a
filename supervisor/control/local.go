package control

import (
	"time"

	"understudy/election"
)

// LeaseStatus is how far a supervisor's lease of one session reaches. A zero LeaseStatus is none.
type LeaseStatus struct {
	Session string
	End     time.Duration // on the machine's clock
	Held    bool          // by the promises of other members, in place of ZooKeeper
	Took    time.Duration // what the heartbeat that says so took; 0: not known
}

// ReadWish is what a client wants of the copy that it reads from, besides that it follows.
type ReadWish struct {
	Lag *uint64 // how far it may be behind the primary, as far as that one's heartbeats tell; nil: as far as its position command lets it
	All bool    // it has every write that was acknowledged
}

// LocalStatus is how a service stands on the supervisor's own node.
type LocalStatus struct {
	Service string
	Role    election.Role
	Reason  election.Reason // why it has this role
	Since   time.Time
	Ready   bool            // its programs run, and have shown that they do their work
	Health  election.Health // of its programs, while it is active
	Why     string          // what is to be known besides
	Token   int64           // of the newest term
	By      election.Proof  // while it is active: how the previous active was known to be dead
	// Follows tells, for a replicated service, why nobody who wants that should
	// read from this node's copy; "": it follows the primary, and has its data.
	Follows func(ReadWish) string
	// Copy tells, for a replicated service, how this node's copy is.
	Copy func() CopyStatus
}
