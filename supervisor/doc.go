// Package supervisor runs programs, each only while this node holds its lock.
//
// The promises, by the numbers that comments and tests use:
//
//   - P1 One child. A service's child runs on at most one node, and only while this node's lease is valid.
//   - P2 Dead means dead. The lock is given back only after the child's whole tree is proved dead. An unproved death keeps
//     the lock until the session ends by itself, and leaves the breadcrumb.
//   - P3 The lease ends before the session can. Whatever happens to us or to our network, the tree is dead before ZooKeeper
//     can have given the lock away by itself. If somebody else may have ended a session, its end does not prove the lease's: see
//     election.FormerLease. A failsafe service's tree may live longer, as long as every node that could start it has
//     promised not to.
//   - P4 No child outlives its supervisor: the guardians make sure.
//   - P5 Fence before start. A child starts only after the node that the breadcrumb names is known to be dead or fenced, and
//     after the breadcrumb names us.
//   - P6 Progress. With a quorum and one healthy node, somebody is active.
//   - P7 Calm. The child does not notice an outage that is shorter than the lease.
//
// Not promised: a machine that is paused as a whole and resumed can run its child for the instant before the guardians'
// timers fire. The grace delay trusts the rates of clocks, never their values. Wiping ZooKeeper's data wipes the breadcrumbs:
// nodes that were connected before it wait until every lease must have ended, a node started after it cannot know.
package supervisor
