// Package control shows and steers a cluster through ZooKeeper, for the command line and HTTP alike: who is active, what was, what is
// wrong and which command mends it, the orders of operators, and the confirmation that a child is dead. It takes part in no election and
// holds no lease.
//
// Cluster is a connection, Link one that is made anew when it fails.
//
// What it promises: Confirm removes no breadcrumb but the one that it has read, and never that of a node whose session
// holds the lock. What it does not: a status is read znode by znode, so it may mix two moments of a failover.
package control
