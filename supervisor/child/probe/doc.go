// Package probe finds out whether a program is well: once (Probe), until it is (WaitReady), or for as long as it runs (Watch).
//
// # Promised
//
//   - A check's error is one line that says why, in words for an operator.
//   - Two checks of one Watch or WaitReady are never under way at once. One that does not end although its time is over is
//     reported as hung, counts as failed, and holds up no caller.
//
// # Not promised
//
//   - Processes that a command leaves behind are not ended here: the Runner ends them.
package probe
