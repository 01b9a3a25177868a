// Package zkfaults is ZooKeeper servers in memory, alone or as an ensemble, for faults that no real server shows on demand.
//
// The data, the watches and the clients are those of election/zkmem, so that the contract that is tested here holds for the
// embedded server, too. What differs is whatever brings requests to them: connections that can be cut and slowed, requests that
// are refused or lose their answers, and a leader with followers that answer from copies of their own.
//
// All waiting is on channels, conditions and timers of package time, so that a server and its clients, joined by
// connections in memory, run inside testing/synctest.
package zkfaults
