// Package unit runs the programs of one service in one tree: it starts them in their order, waits until each is ready, watches
// their health, runs hooks and checks, stops them in reverse, undoes their effects, and writes their output to files.
//
// A Unit lives as long as its service; a Run lasts from the start of the first program until all of them end.
//
// Promised:
//
//   - A program starts only after MayStart allowed it, and a previous run's effects are undone before a oneshot repeats them.
//   - The undo of a oneshot is due, and written down, before the oneshot starts.
//   - An undo that the tree's end interrupted is still due.
//   - Stop returns as soon as its Cut says so: the caller kills the processes that are left.
//
// Not promised: that anything is dead. A Run asks its programs to end; only the tree, which is the caller's, proves a death.
// This package knows no lock and no ZooKeeper: the caller decides when a run begins, and why it ends.
package unit
