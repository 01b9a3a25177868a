// Package election talks to ZooKeeper: one session at a time, the lease that the session backs, and the claim to a
// service's lock together with its breadcrumb.
//
// It promises:
//
//   - P3: a lease ends before ZooKeeper can have ended the session. It is counted from the moment at which
//     the newest acknowledged write was sent; answers to pings and reads do not extend it. Only ExtendByPromises goes beyond
//     that.
//   - P5: a claim is complete only when the breadcrumb names us, written in one transaction with (or checked against) the
//     lock, and a later read showed that the lock is ours.
//   - Unknown stays unknown: after a call whose answer was lost, the package reads the lock's owner and never guesses it.
//
// It starts and stops no program, and fences no node. The caller finds out whether a breadcrumb's owner is dead, and calls neither
// Release nor Close while a child may be alive.
package election
