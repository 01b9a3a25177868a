// Package role is the machine that decides what one service does on one node. It is pure: no clock, no I/O, no lock, no logger.
//
// The machine drives. Each place has one action, which blocks and returns exactly one event; Step is told the event and says which place
// comes next, and nothing else decides. Step lists the events that each action may return; any other event is an error, and then
// the term ends as if its lease were lost: its processes are killed, and without a proof of their death nothing is released.
//
// What the machine keeps, whatever events come:
//
//   - P5: no program runs before the previous active is known to be dead: Running is entered from Arming, Resuming and Waiting alone.
//   - P2: the lock is given back only after the tree is proved dead and its effects are undone: Releasing is entered from Undoing
//     alone, and Undoing from Proving or Clearing. Without the proof a service leaves its session, which then must not be closed.
//   - One claim: a service gives its claim back, hands it over, or leaves it to the end of the session, before it makes another.
//
// Killing is exempt: any goroutine that learns that a lock is lost or a lease over may order a death at any time. The machine alone
// decides what follows.
package role
