// Package zktest runs real ZooKeeper servers for tests and benchmarks: single ones and ensembles, which can be killed,
// stopped, frozen, wiped and started again one by one.
//
// The servers are those of Debian's package zookeeper, run by java directly, on free ports of the loopback and with
// their data in a directory that goes with the test. They die with the process that started them, however it ends.
package zktest
