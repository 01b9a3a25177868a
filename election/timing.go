package election

import (
	"errors"
	"time"
)

// All times follow from the lease: how long a node's programs may run after the sending of its last acknowledged heartbeat.

// sessionTimeout is what a session asks for. Nothing rests on it, nor on
// what the servers grant: a session that ends sooner costs a takeover.
func sessionTimeout(lease time.Duration) time.Duration { return 2 * lease }

// beatEvery is how often a heartbeat is sent.
func beatEvery(lease time.Duration) time.Duration { return lease / 6 }

// AfterLease is how long after a lease's end a watchdog may still end a program that outlives it. P1: by then OverAfter has not passed.
func AfterLease(lease time.Duration) time.Duration { return lease / 25 }

// Watchdog is the timeout, in whole seconds, of a hardware watchdog; 0: the lease is too short for one. P7: it is fed as long as so much of
// a lease is left, so that servers which take three fifths of it to answer reset nothing. A machine that stands still for longer is reset.
func Watchdog(lease time.Duration) time.Duration {
	if lease*3/5 < time.Second {
		return 0
	}
	return max((lease * 2 / 5).Truncate(time.Second), time.Second)
}

// OverAfter is how long a node has to see a beat stand still before the lease that rests on it is over. A heartbeat that was acknowledged
// before the first look was sent before it, so its lease has run out by then; one that is acknowledged later revives no lease. A twentieth
// is more than the rates of two clocks may differ.
func OverAfter(lease time.Duration) time.Duration { return lease * 21 / 20 }

// undoMargin is for the death of the programs before the first undo, the writing of what is left, and clocks of two rates.
const undoMargin = time.Second

// Takeover is after how long at most the program of a lost host runs on another one, if nothing proves its death: its last heartbeat is
// seen with the next look.
func Takeover(lease, grace time.Duration) time.Duration {
	return beatEvery(lease) + OverAfter(lease) + grace
}

// stallLimit is how long a server may take to let us in before we try another one. In a long lease it is less than two fifths: two
// silences, and a freeze of our own, have to fit into one.
func stallLimit(lease time.Duration) time.Duration {
	return max(min(lease*2/5, 3*time.Second), lease/5)
}

// StopEarly is how long before its end a lease that is not extended counts as ending, so that a child is asked before it
// is killed.
func StopEarly(lease time.Duration) time.Duration { return lease / 10 }

// Reasons for a session's end.
var (
	ErrLeaseEnding = errors.New("ZooKeeper has acknowledged no write for too long")
	ErrExpired     = errors.New("the ZooKeeper session has expired")
	ErrClosed      = errors.New("the session is closed")
	ErrBeatGone    = errors.New("somebody deleted the znode of this supervisor, which carries its heartbeats")
)
