// Package role is the machine that decides what one service does on one node. It is pure: no clock, no I/O, no lock, no logger.
//
// The machine drives. Each place has one action, which blocks and returns exactly one event; Step is told the event and says which place
// comes next, and nothing else decides. What an action may return is listed in Step; every other event is an error, and then the
// term ends as one does whose lease is lost: its processes are killed, and without a proof of their death nothing is released.
//
// What the machine keeps, whatever events come:
//
//   - P5: no program runs before the former active is known to be dead: Running is entered from Arming, Resuming and Waiting alone.
//   - P2: the lock is given back only after the tree is proved dead and what it did is undone: Releasing is entered from Undoing
//     alone, and Undoing from Proving or Clearing. Without the proof a service leaves its session, which then must not be closed.
//   - One claim: who holds one gives it back, hands it over, or leaves it to the end of its session, before another is made.
//
// Killing is exempt: whoever learns that a lock is lost or a lease over may order a death at any time. What follows, the machine decides.
package role
