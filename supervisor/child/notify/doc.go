// Package notify gives a program a socket to say that it is ready, as sd_notify(3) does: one for each start.
//
// # Promised
//
//   - Only processes of the program are heard. The kernel tells who a sender is; whether it belongs is the caller's to say.
//   - Nobody but the user that the program starts as, and root, reaches the socket of a program that does not start as root. That of
//     one that does, and may become anybody, has a name that only the program is told.
//   - It is made where nobody else can have put something in its place: a folder of others, or one they can write to, is refused.
//   - What is ignored is told in a line a minute, with a count. However much is sent, a bounded part of it is read in any time.
//   - A sender that waits for its barrier, as systemd-notify does, is let go once everything that it said before is taken in.
//   - Descriptors that come along are closed, whatever they are. A datagram is read up to 4 KiB; nothing grows.
//   - Close removes the socket. Sweep removes those of supervisors that could not.
//
// # Not promised
//
//   - Other processes of the program's own user can fill the socket's queue: the program waits for as long as they do.
//   - A sender that has ended before its message is read can be known by its user only: it counts if that is the one the
//     program was started as, or root.
package notify
