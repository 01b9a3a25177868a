// Package demo is a whole hot-standby set on one machine: an embedded ZooKeeper, real supervisors as processes of their
// own, and a program that they wrap. It breaks the active one in every way, and measures gaps and overlaps.
//
// What it promises: the program itself measures them, by the clock of this machine (for a command a small program that starts it, and
// ends with it, which Run says); and when Run returns, no process that it started is left.
package demo
