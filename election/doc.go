// Package election talks to ZooKeeper: one session at a time, the lease that the session backs, and the claim to a
// service's lock together with its breadcrumb.
//
// What it promises:
//
//   - P3: a lease ends before ZooKeeper can have ended the session. It is counted from the moment the newest acknowledged
//     write was sent; answered pings and reads extend nothing. Hold alone goes beyond that, for whoever has others' promises.
//   - P5: a claim is complete only when the breadcrumb names us, written in one transaction with (or checked against) the
//     lock, and a read after it showed the lock to be ours.
//   - What is unknown stays unknown: a call whose answer was lost is resolved by reading the lock's owner, never guessed.
//
// What it does not: it starts and stops nothing and fences nobody. Whether a breadcrumb's owner is dead is the caller's
// to find out, and Release and Close are the caller's to withhold while a child may be alive.
package election
