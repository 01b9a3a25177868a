// Package logfile writes a program's output to a file that rotates by size, and never blocks the program for that.
//
// # Promised
//
//   - As long as Run runs, the program's writes do not wait for the file. Output that cannot be written is kept (4 MiB), then
//     dropped in whole lines; a line in the log counts the dropped ones, in their place. A file that is slower than the
//     program slows it down, as long as the file takes 2 MiB within 100 ms; a slower file loses lines instead.
//   - Rotation is between lines. If somebody moves, deletes or truncates the file, Run makes a new one, or continues it.
//   - A full disk, an I/O error, a directory that cannot be written to: Run retries for ever.
//   - Two pumps never write to one file.
//   - When the last holder of the writer is dead, Run has its last line in the file before it returns.
//
// # Not promised
//
//   - A line longer than 1 MiB may be cut in two by a rotation.
//   - Nothing is synced: a host that loses power loses the output that the kernel had not written.
//   - Without a regular file behind the path there is no log: symbolic links, pipes and devices are refused.
package logfile
