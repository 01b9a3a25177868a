// Package election talks to ZooKeeper: one session at a time, the lease that the session backs, and the claim to a
// service's lock together with its breadcrumb.
//
// It promises:
//
//   - P3: a lease ends before ZooKeeper can have ended the session. It is counted from the moment the newest acknowledged
//     write was sent; answered pings and reads extend nothing. Only ExtendByPromises
//     goes beyond that.
//   - P5: a claim is complete only when the breadcrumb names us, written in one transaction with (or checked against) the
//     lock, and a read after it showed the lock to be ours.
//   - Unknown stays unknown: after a call whose answer was lost the lock's owner is read, never guessed.
//
// It starts and stops nothing, and fences nobody. The caller finds out whether a breadcrumb's owner is dead, and calls neither Release
// nor Close while a child may be alive.
package election
