// Package safefile opens files on paths that a service's user controls a part of, and looks who controls those of a config.
//
// # Promised, to a process of root
//
//   - Every directory on the way belongs to root, to the user who ran sudo, or to the service's user, who can reach no more by it
//     than by himself.
//   - A symbolic link is followed only if it is root's and stands where the service's user cannot write.
//   - What is opened is a regular file that nobody waits for. Where others can write its directory, it has no other name and
//     belongs to one of the above.
//   - What is renamed, removed or made then is in the directory that was looked at, whatever its path leads to by now.
//
// Without root, only links that a stranger put where he may write are refused.
package safefile
