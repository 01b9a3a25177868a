// Package service runs one service on one node: it is a candidate for its lock, runs terms, and follows what operators want.
//
// Package role decides, and this package does: each place of the role machine is one method of stay, which blocks until it has one
// event to report. The promises are kept in these places:
//
//   - P1: a program is started only in a term that has passed Fence and Arm; Gate, MayStart and the lease's guardians do the rest.
//     Whoever learns that the lock is lost kills at once (term.watchLock), whatever the machine is about.
//   - P2: Release is called after Prove and Undo alone. What cannot be proved dead leaves the session unclosed.
//   - P5: Fence returns FormerDead only when nobody else's program runs and the breadcrumb names this node.
package service
