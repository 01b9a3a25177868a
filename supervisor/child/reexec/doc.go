// Package reexec has this process become another binary by an exec: it stays the same process, with the same children. The one image leaves
// its state to the next, in a file without a name, and the files that are to stay open.
//
// A supervisor runs it. What is in the state is up to its users.
package reexec
