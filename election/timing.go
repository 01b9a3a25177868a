package election

import (
	"errors"
	"fmt"
	"time"
)

// beatEvery is how often a heartbeat write is sent.
func beatEvery(session time.Duration) time.Duration { return session / 12 }

// leaseSlack is the part of a session timeout that a lease must not use.
//
// P3: a follower forwards touches to its leader every half tick, and a tick is at most half the smallest session timeout a
// server grants by default, hence session/4. The touch that reached the leader last may be two heartbeats older than the
// acknowledged write. The rest is for jitter and for the killing itself.
func leaseSlack(session time.Duration) time.Duration {
	return 2*beatEvery(session) + session/4 + session/30
}

// LeaseLength is how long a lease lasts, counted from the sending of an acknowledged write.
func LeaseLength(session time.Duration) time.Duration { return session - leaseSlack(session) }

// AfterLease is how long a session lives at least after its lease's end, also in the worst case that leaseSlack assumes.
// By then a watchdog must have ended a child that outlives its lease.
func AfterLease(session time.Duration) time.Duration { return session / 30 }

// Watchdog is the timeout, in whole seconds, of a hardware watchdog that is fed at most until a timeout before the session's
// earliest end; 0: the session is too short for one.
//
// P3: from the sending of an acknowledged write to that end it is T - (2*T/12 + T/4) = 7T/12. With a timeout of T/3 there
// is T/4 left, three heartbeats, in which it may be fed.
func Watchdog(session time.Duration) time.Duration { return (session / 3).Truncate(time.Second) }

// OverAfter is how long a node has to see a beat stand still before that is over, and the programs that rest on it are dead. A heartbeat that
// was acknowledged before the first look was sent before it, so its lease has run out by then; one that is acknowledged later revives no lease. A
// twentieth is more than the rates of two clocks may differ. The rest is the slack for killing, which a watchdog may use up.
func OverAfter(session time.Duration) time.Duration {
	return LeaseLength(session)*21/20 + AfterLease(session)
}

// undoMargin is for the death of the programs before the first undo, the writing of what is left, and clocks of two rates.
const undoMargin = time.Second

// Takeover is after how long at most the program of a lost host runs on another one, if nothing proves its death: its last heartbeat is
// seen with the next look.
func Takeover(session, grace time.Duration) time.Duration {
	return beatEvery(session) + OverAfter(session) + grace
}

// stallLimit is how long a server may stay silent, or a write unanswered, before we try another server. In a long session it
// is less than a fifth: two silences, and a freeze of our own, have to fit into one lease. It is longer than the pause between
// heartbeats.
func stallLimit(session time.Duration) time.Duration {
	return max(min(session/5, 3*time.Second), session/10)
}

// answerLimit is how long an answer may take before the connection counts as broken.
func answerLimit(session time.Duration) time.Duration { return session / 3 }

// StopEarly is how long before its end a lease that is not extended counts as ending, so that a child is asked before it
// is killed.
func StopEarly(session time.Duration) time.Duration { return session / 10 }

// Reasons for a session's end.
var (
	ErrLeaseEnding = errors.New("ZooKeeper has acknowledged no write for too long")
	ErrExpired     = errors.New("the ZooKeeper session has expired")
	ErrClosed      = errors.New("the session is closed")
	ErrBeatGone    = errors.New("somebody deleted the znode of this supervisor, which carries its heartbeats")
)

// MinTimeout is the shortest session timeout that leaves a lease worth having.
const MinTimeout = time.Second

// CheckTimeout returns why a session timeout cannot keep the promises.
func CheckTimeout(session time.Duration) error {
	if session < MinTimeout {
		return fmt.Errorf("session timeout %v is shorter than %v", session, MinTimeout)
	}
	return nil
}
