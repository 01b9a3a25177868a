// Package demo is a whole hot-standby set on one machine: an embedded ZooKeeper, real supervisors as processes of their
// own, and a program that they wrap. It breaks the active one in every way, and measures what came of it.
//
// What it promises: gaps and overlaps are measured by the program itself, on the one clock of this machine (or, for a
// program that cannot, from outside, and then it says so); and nothing that it started is left when Run returns.
package demo
