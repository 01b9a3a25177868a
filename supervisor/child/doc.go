// Package child runs programs and kills them in time: when their lease ends, when the supervisor is gone or frozen, or when
// it says so. Two guardians, processes of the same binary, make sure of that.
//
// A supervisor runs it, as it does containment, reexec, logfile, notify and probe. What other processes run is in guardian and inside; box,
// wire and device are what these have in common.
//
// # Promised
//
//   - P2: nil from Tree.Kill, Tree.End and KillByID proves that no process of the tree is left: by the kernel's own count of
//     a cgroup, the death of a PID namespace's init, or ECHILD at a subreaper. After End no late fork succeeds.
//   - P2: the process that a start forked is dead when its pidfd says so, and not before, in whichever cgroup it is then. Supervisor
//     and both guardians hold the pidfd before the process runs the program, and kill it through that; a later supervisor finds
//     it by its cgroup.
//   - The package kills one by one the members of a cgroup that the kernel's cgroup.kill leaves out, such as a process whose main
//     thread has ended. It removes cgroups that a program made inside its own, however deep or many, in bounded work a step.
//   - P2 holds for each start in a tree by itself, too: Process.Kill ends, with proof, all processes that the start spawned, and leaves the
//     rest of the tree alone. Every start has a cgroup, a PID namespace or a subreaper of its own inside the tree.
//   - P3: a tree is dead within milliseconds of its epoch's deadline, whatever the supervisor does. An ended lease is never
//     revived, and a supervisor that thaws between its last look at the lease and its fork starts nothing.
//   - P4: if any two of supervisor and guardians are killed, at once or in any order, the tree dies. A single guardian
//     that is killed, or does not answer, is replaced, and the program does not notice.
//   - A guardian closes the session of an ended epoch, and only after all of its trees are proved dead.
//
// # Not promised
//
//   - If all three are killed at once, a tree in a cgroup loses its first process only (by its death signal); in a PID
//     namespace all of it dies; the stub of a walked tree ends it.
//   - If both guardians are killed while the supervisor is frozen, nobody acts until it thaws.
//   - A program can move itself to another cgroup, if it runs as root or as a user with a delegated cgroup. Processes that it
//     forks there are not found, nor are those that another service starts for it. If it also removes the cgroup that it has
//     left, and then supervisor and guardians are all killed, the program itself is not found either.
//   - In a user namespace, which a PID namespace needs without root's rights, setuid programs and file capabilities give nothing.
//   - Walked trees: a tree whose stub somebody else killed cannot be proved dead, and is never called dead; a program that forks
//     faster than a walk of /proc takes tens of milliseconds to kill.
//   - In a PID namespace a program sees the pids of its own start only: not those of its unit's other processes.
//   - A user that only a name service knows (LDAP, sssd) is found only if getent is installed, and if it answers within 5 s.
//   - A host that is paused as a whole resumes its programs together with the guardians.
//   - A program on a file system that hangs holds up the start of all others.
//   - If all three are killed, cgroups stay behind as empty directories.
package child
