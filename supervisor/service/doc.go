// Package service runs one service on one node: it is a candidate for its lock, runs terms, and follows operators' orders.
//
// Package role decides, and this package acts. Service lasts as long as the config has it; a stay is its time in one session, and has a
// method for each place of the role machine, which blocks until it has one event to report. What lasts less long has its own type:
// leftovers, of a previous session; a candidacy, with its tree; a term, from the claim to the proof of death, with its run; and a term's
// promotion, where the service is replicated. The journey from a lock to a running program:
//
//	Service.Serve     one goroutine; role.Drive calls the methods below, and Moved after each step
//	stay.EndOld       (leftover.go) what a previous session or supervisor left running here is dead
//	stay.UndoOld      (stay.go) and so are its effects: an address, a mount
//	stay.Join         this node becomes a candidate; after a loss of ZooKeeper's data, Quarantine waits for the end of every lease
//	stay.Joined       (candidate.go) the candidate's helpers: what it announces, the operators' orders, the precheck, the watchdog
//	stay.Prepare      makes the tree, a container for the programs, so that a failover need not
//	stay.StandBy      (standby.go) waits until the lock is free and nothing bars this node; WaitAllowed waits while something does
//	stay.Claim        takes the lock, with a breadcrumb that names the tree: a term begins
//	stay.Fence        (fence.go) no program of the previous active runs any more, by a proof or after a delay
//	stay.Arm          (term.go) passes the session's gate, arms the watchdog, and from here on watches the lock
//	stay.Run          (run.go) starts the programs (package unit), and follows orders while they run
//
// And back:
//
//	stay.Stop         asks the programs to end; Clear kills what they left behind if they start again in the same tree
//	stay.Judge        (judge.go) asks the restart policy after an end that nobody ordered; Wait is the pause before the next Run
//	stay.Prove        (end.go) the whole tree is dead, and nothing can be started in it
//	stay.Undo         undoes what the oneshots did
//	stay.Release      gives the lock back
//	stay.Record       writes the end into the history; then the candidate prepares again, or Parted ends it
//
// An upgrade goes from Run to HandOver in the old image of the process, and in the new one from Join to Resume and Run (carry.go).
//
// The promises are kept in these places:
//
//   - P1: a program is started only in a term that has passed Fence and Arm; the gate, mayStart and the lease's guardians do the rest.
//     The goroutine that learns that the lock is lost kills at once (term.watch), whatever the machine does.
//   - P2: Release is called after Prove and Undo alone. Without a proof of death the session is not closed.
//   - P5: Fence returns PreviousDead only when no other node's program runs and the breadcrumb names this node.
package service
