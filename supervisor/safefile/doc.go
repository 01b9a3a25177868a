// Package safefile opens files on paths that a service's user partly controls, and finds out who controls the files of a config.
//
// # Promised, to a process of root
//
//   - Every directory on the way belongs to root, to the user who ran sudo, or to the service's user, who gains nothing that way.
//   - A symbolic link is followed only if it is root's and lies where the service's user cannot write.
//   - It opens only regular files, without blocking. If others can write to the directory, the file has no other name and
//     belongs to one of the above.
//   - It then renames, removes or creates files in the very directory that it checked, wherever the path leads by now.
//
// Without root, only links that a stranger put where he may write are refused.
package safefile
