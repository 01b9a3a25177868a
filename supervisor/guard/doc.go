// Package guard is what guardians decide (Ward), and what their supervisor knows of them (Pair): when a lease ends, what is killed and in
// which order, what counts as dead, when a session is closed, and when the watchdog is fed; what both have to know (Ledger), who has
// answered, who is taken for lost, and when a start and a kill are in each other's way. It is pure: it has no clock, does no I/O, starts
// no goroutine, takes no lock. Package child runs it over sockets, pidfds, cgroups and a device; the simulation runs the same code over
// its own processes and pipes.
//
//   - P2: a tree is dead when the last look at each of its bodies proves it, and stays so. Nothing else is released, no session is
//     closed for anything else.
//   - P3: a lease that is not extended ends at its deadline. An ended lease is never revived. Every first order to kill comes before
//     any look at what was ordered to die.
//   - P4: the end of the supervisor ends every lease, and so does a twin that is gone and not replaced in time.
package guard
