// Package logfile takes a program's output into a file that rotates by size, and never holds the program up for it. Reader shows such a log to a
// person, over its rotations.
//
// # Promised
//
//   - As long as Run runs, the program's writes do not wait for the file: what cannot be written is kept (4 MiB), then
//     dropped in whole lines, counted, and told by a line of its own where it is missing. A file that is slower than the
//     program slows it down, as long as it takes 2 MiB within 100 ms; one that is slower still loses lines instead.
//   - Rotation is between lines. A file that was moved, deleted or cut by somebody else is made anew, or gone on with.
//   - A full disk, an I/O error, a directory that cannot be written to end nothing: it is tried again for ever.
//   - Two pumps never write to one file.
//   - When the last holder of the writer is dead, Run has its last line in the file before it returns.
//
// # Not promised
//
//   - A line longer than 1 MiB may be cut in two by a rotation.
//   - Nothing is synced: a host that loses its power loses what the kernel had not written.
//   - Without a regular file behind the path there is no log: symbolic links, pipes and devices are refused.
package logfile
