// Package child runs programs that are dead when they have to be: when their lease ends, when the supervisor is gone or
// frozen, when it says so. Two guardians, processes of the same binary, see to it.
//
// # Promised
//
//   - P2: nil from Tree.Kill, Tree.End and KillByID is proof that no process of the tree is left: the kernel's own count of
//     a cgroup, the death of a PID namespace's init, or ECHILD at a subreaper. After End no fork that comes late succeeds.
//   - P2: the process that a start forked is dead when its pidfd says so, and not before, wherever it has moved itself. Supervisor
//     and both guardians hold it before it runs the program, and kill it by that pidfd; a later supervisor finds it by its cgroup.
//   - Members of a cgroup that the kernel's order to kill it leaves out, such as a process whose main thread has ended, are killed one
//     by one. Cgroups that a program made inside its own are removed, however deep or many they are, in bounded work a turn.
//   - P2 holds for each start in a tree by itself, too: Process.Kill ends, with proof, what that start spawned, and leaves the
//     rest of the tree alone. Every start has a cgroup, a PID namespace or a subreaper of its own inside the tree.
//   - P3: a tree is dead within milliseconds of its epoch's deadline, whatever the supervisor does. An ended lease is never
//     revived, and a supervisor that thaws between its last look at the lease and its fork starts nothing.
//   - P4: of supervisor and guardians any two may be killed, at once or in any order, and the tree dies. A single guardian
//     that is killed, or does not answer, is replaced, and the program does not notice.
//   - The session of an ended epoch is closed by a guardian, and only for trees that are proved dead.
//
// # Not promised
//
//   - If all three are killed at once, a tree in a cgroup loses its first process only (by its death signal); in a PID
//     namespace all of it dies; a walked tree is ended by its stub.
//   - If both guardians are killed while the supervisor is frozen, nobody acts until it thaws.
//   - What a program forks after it has moved itself to another cgroup, as root can, or a user with a delegated cgroup, is not found,
//     nor what it has another service start for it. If it removes the cgroup that it has left as well, and then supervisor and guardians
//     are all killed, nobody knows of it.
//   - In a user namespace, which a PID namespace needs without root's rights, setuid programs and file capabilities give nothing.
//   - Walked trees: a tree whose stub was killed by somebody else cannot be proved dead, and is never called so; forks
//     faster than a walk of /proc take tens of milliseconds to run down.
//   - In a PID namespace a program sees the pids of its own start only: not those of its unit's other processes.
//   - A user that only a name service knows (LDAP, sssd) is found where getent is; its answer is waited for at most 5 s.
//   - A host that is paused as a whole resumes its programs together with the guardians.
//   - A program on a file system that hangs holds up the start of all others.
//   - Cgroups that were emptied by nobody's guardian (all three killed) stay behind as empty directories.
package child
