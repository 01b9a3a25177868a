// Package guard has the decisions of a guardian (Guardian), and what a supervisor knows of its two (Guardians).
//
// A Guardian decides when a lease ends, which trees to kill in which order, which trees count as dead, when to close a session, and when
// to feed the watchdog. Guardians have a State, which is all that both have to know. They decide which guardian has
// answered, which one counts as lost, and how a start and a kill exclude each other. Tree.Kill kills a tree for its supervisor until its
// death is proved; KillOnce is one step of that, which guardians take, too.
//
// The package is pure: it has no clock, does no I/O, starts no goroutine, takes no lock. Only a kill waits, by what it is
// given. Package child runs it over sockets, pidfds, cgroups and a device; the simulation runs the same code over its own processes and
// pipes.
//
// It promises:
//
//   - P2: a tree is dead when the last look at each of its boxes proves it, and stays so. Without that proof a guardian
//     releases nothing and closes no session, and a kill returns an error.
//   - P3: a lease that is not extended ends at its deadline. An ended lease is never revived. A step first orders every kill, and
//     only then looks for deaths.
//   - P4: every lease ends with the supervisor, and also when the other guardian is gone and not replaced in time.
package guard
