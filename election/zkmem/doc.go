// Package zkmem is a ZooKeeper server that lives in memory and in the process that starts it: for trying things out.
//
// It speaks the wire protocol of ZooKeeper 3.8 as a standalone server, as far as Understudy and plain clients need it, and
// behaves like one there: a suite of tests runs against it and against the real server and expects the same of both. It
// keeps no promise about data: what it holds is gone when the process is.
//
// What it lacks is unimplemented, and ends the connection: containers, TTL nodes, persistent watches, reconfiguration, SASL,
// and the requests that tell of ephemerals, of numbers of znodes and of the client itself. An ACL of an address is invalid.
// Quotas are not counted. Children and the ephemerals of an ended session come in the order of their names where the real
// server follows its hash tables.
//
// Data, Watches and Client are what the servers are made of that tests disturb (supervisor/testbed/zkfaults), too.
package zkmem
