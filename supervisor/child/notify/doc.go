// Package notify gives a program a socket to say that it is ready, as sd_notify(3) does: one for each start.
//
// # Promised
//
//   - Only processes of the program are heard. The kernel says which process sent a message; the caller says whether that belongs
//     to the program.
//   - Nobody but the user that the program starts as, and root, reaches the socket of a program that does not start as root. A
//     program that does may become anybody, so its socket has a name that only this program is told.
//   - The socket's folder is ours alone: one that belongs to others, or that they can write to, is refused.
//   - One line a minute counts the ignored messages. However many arrive, the supervisor reads a bounded number in any time.
//   - A sender that waits for its barrier, as systemd-notify does, goes on once its earlier messages have been read.
//   - Descriptors that come along are not received: the kernel closes them. A datagram is read up to 4 KiB; nothing grows.
//   - Close removes the socket. That of a supervisor that was killed stays until a boot, and nobody hears it.
//
// # Not promised
//
//   - Other processes of the program's own user can fill the socket's queue: the program waits for as long as they do.
//   - A descriptor may take hours to close (a TCP socket that lingers, a file of a FUSE server): Run and Close may hang, and nobody
//     may wait for them without a bound.
//   - A sender that has ended before its message is read is known only by its user: the message counts if that is the user the
//     program was started as, or root.
package notify
