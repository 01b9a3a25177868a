// Package demo is a whole hot-standby set on one machine: an embedded ZooKeeper, real supervisors as processes of their
// own, and a program that they wrap. It breaks the active one in every way, and measures gaps and overlaps.
//
// What it promises: the program itself measures them, by the clock of this machine (for a program that cannot, the demo
// measures from outside, and says so); and when Run returns, no process that it started is left.
package demo
