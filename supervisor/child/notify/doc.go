// Package notify gives a program a socket to say that it is ready, as sd_notify(3) does: one for each start.
//
// # Promised
//
//   - Only processes of the program are heard. The kernel tells who a sender is; whether it belongs is the caller's to say.
//   - A sender that waits for its barrier, as systemd-notify does, is let go once everything that it said before is taken in.
//   - Descriptors that come along are closed, whatever they are. A datagram is read up to 4 KiB; nothing grows.
//   - Close removes the socket. Sweep removes those of supervisors that could not.
//
// # Not promised
//
//   - A sender that has ended before its message is read can be known by its user only: it counts if that is the one the
//     program was started as, or root.
package notify
