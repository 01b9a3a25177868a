// Package sim runs whole clusters of supervisors in virtual time, under schedules of faults, and checks the promises after
// every step.
//
// Real are: supervisor.Run with its roles and terms, election, fencing, the ZooKeeper client, what guardians decide (guard.Guardian), and what a
// supervisor knows of them (guard.Guardians); all of it runs in a bubble of testing/synctest. Simulated are: hosts with clocks of their own
// rates (within 0.1 % of true time), process trees, the sockets of guardians (supervisor/child itself cannot run here), the network
// between each host and each server, and ZooKeeper (testbed/zkfaults, alone or as an ensemble with followers that answer reads and pings by themselves).
//
// A Plan follows from one seed: the cluster's shape, then episodes of faults, each ended by a time in which everything is
// healed. What the checker holds against every start and end of a process, and against every transaction of ZooKeeper:
//
//   - P1: no process of another activation of the service is alive at a start, and tokens only grow.
//   - P2: a lock or breadcrumb goes only when nothing is alive of the activation that it named.
//   - P1 as well: when a node has waited for a lease's end by time alone, no other node's lease that it waited for lasts, as that one computes it.
//   - P3: no process of a session is alive when ZooKeeper expires it; of a failsafe service, none but where every other node
//     that its breadcrumb lists has so lately not been heard by ZooKeeper that it may have promised to start nothing.
//   - P4: nothing outlives its supervisor by a second while a guardian can act, and nothing runs without the lock at rest.
//     Nothing outlives the last guardian that knew of it by more than it takes to notice that both are lost.
//   - P5: at a start, lock and breadcrumb name that very activation.
//   - P6: after everything is healed, each service runs within a bound.
//   - P7: where only blips shorter than the lease happen, no child ends; nor does one when another service's config changes; nor
//     a failsafe service's when all servers are down for longer, while all sessions are about as long as each other.
//   - Lock: no node deletes the lock of another session.
//   - Pause: no lock is taken while the service's control znode says that it is paused.
//   - Failback: when all has been well for long, no node runs a service to which another one is preferred, and it has not moved
//     more often than there are nodes, and two.
//   - Queue: no session takes a second place in a service's queue.
//   - Standby: by then every node that has the service and may run it says that it is active or stands by.
//   - Reload: by then the program runs with the config that it has now.
//   - History: by then no activation ended, in the history, after the programs of the next one had started.
//   - Seen: a primary that other nodes do not reach stays as long as none of their copies is fit, and goes to one of them when one is.
//   - Orders, status: in drills (see Plan.drills), an order is followed within a second where nothing runs, and where nothing runs
//     nobody says that it is well.
//
// What the schedules leave alone, because no promise covers it: of supervisor and guardians never all three are out of action
// at once, but for a loss of power; data is lost only while every supervisor is connected, and none is started until the
// leases of before have ended, those that go by promises included; a failsafe service is in the breadcrumb's list with all nodes
// then, and its breadcrumb is not deleted by hand; an operator deletes lock or breadcrumb by hand, never both at a time but with all of the
// service, at once, under the same rules as for a loss of data. A process that is killed
// but held by its kernel counts as alive for P2, and as ended for P1 and P3: it runs no instruction of its own any more.
// Some programs leave their container, and what some fork outlives the one order to kill that.
//
// A supervisor that is killed is cut off from the world at once and unwinds without effect; one that is frozen waits at a gate
// before each effect. Replies are lost, not duplicated: a ZooKeeper connection cannot do that, and what a repeated request
// does is what one does whose answer was lost.
package sim
