// Package zkmem is a ZooKeeper server that lives in memory and in the process that starts it: for tests, for trying
// things out, and for faults that no real server will show on demand.
//
// It speaks the wire protocol of ZooKeeper 3.8 as a standalone server and behaves like one: a suite of tests runs
// against it and against the real server and expects the same of both. It keeps no promise about data: what it holds
// is gone when the process is.
//
// What differs from the real server: children and the ephemerals of an ended session come in the order of their names
// where the real one follows its hash tables; TTL nodes, reconfiguration and SASL are refused as a server refuses what it
// was not configured for; quotas are counted and cannot be enforced; multiRead is unknown; times in mntr are zero, sizes in
// dirs too.
//
// All waiting is on channels, conditions and timers of package time, so that a server and its clients, joined by
// connections in memory, run inside testing/synctest.
package zkmem
