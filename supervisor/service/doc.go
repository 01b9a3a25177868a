// Package service runs one service on one node: it is a candidate for its lock, runs terms, and follows operators' orders.
//
// Package role decides, and this package acts: each place of the role machine is one method of hands, which blocks until it has one event
// to report. The promises are kept in these places:
//
//   - P1: a program is started only in a term that has passed Fence and Arm; the gate, mayStart and the lease's guardians do the rest.
//     The goroutine that learns that the lock is lost kills at once (term.watch), whatever the machine does.
//   - P2: Release is called after Prove and Undo alone. Without a proof of death the session is not closed.
//   - P5: Fence returns FormerDead only when no other node's program runs and the breadcrumb names this node.
package service
