// Package box is what contains a tree of processes, and proves it dead: a cgroup, a PID namespace, or a stub and walks of /proc. It also
// finds what others left: a tree by its written identity, all trees of a supervisor that is gone, a process that cannot be killed.
//
// Whoever kills a tree runs it: its supervisor, both guardians, a later supervisor, a stub in front of its own program, and what systemd
// runs when a unit has ended (SweepUnit).
//
// It promises P2: no look proves a death that the kernel has not told of, and what is out of sight never counts as dead.
package box
