// Package control shows and steers a cluster through ZooKeeper, for the command line and HTTP alike: who is active, the
// history, problems with the commands that mend them, operators' orders, and the confirmation that a child is dead. It takes part in no
// election and holds no lease.
//
// Cluster is a connection; SharedCluster is one that connects again when it fails.
//
// What it promises: Confirm removes no breadcrumb but the one that it has read, and never that of a node whose session
// holds the lock. It does not promise a consistent status: that is read znode by znode, so it may mix two moments of a failover.
package control
