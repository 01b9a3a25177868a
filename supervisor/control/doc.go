// Package control is what the operator's commands know of a cluster and do to it: who is active, what was, and the
// confirmation that a child is dead. It stands for no election and holds no lease.
//
// What it promises: Confirm removes no breadcrumb but the one that it has read, and never that of a node whose session
// holds the lock. What it does not: a status is read znode by znode, so it may mix two moments of a failover.
package control
