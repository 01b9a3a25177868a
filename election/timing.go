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

// PreviousLease is the worst case for a claimant that has no proof of a death.
type PreviousLease struct {
	Session time.Duration // the longest session timeout that the previous active's lease may rest on
	Lives   bool          // its session may still exist
	Others  bool          // not only its own node and the servers can have ended its session
	Undoing time.Duration // how long its node may take to undo the effects of its programs
}

// undoMargin is for the death of the programs before the first undo, the writing of what is left, and clocks of two rates.
const undoMargin = time.Second

// Wait is how long a claimant waits, from its claim, until the previous active's lease has ended; at least grace.
//
// P1: A session that the servers have ended by themselves was silent for so long that the lease ended before (P3): then Wait adds
// nothing. A session that others can end may have had a heartbeat acknowledged right before, and its node may not hear of
// its end. From the sending of that heartbeat until the last death it is at most 7T/12: the lease, and the slack for killing, which
// a watchdog may use up. Two clocks measure this, so Wait adds T/20: more than their rates may differ. A live session may get
// heartbeats acknowledged after the claim; within T its node has learned of the lock's end, and acted, or has lost its lease. Only then
// it undoes effects: what is not undone in its time, its breadcrumb says.
func (f PreviousLease) Wait(grace time.Duration) time.Duration {
	if f.Undoing > 0 {
		undoing := f.Undoing + undoMargin
		f.Undoing = 0
		return max(f.Wait(grace), f.Wait(0)+undoing)
	}
	wait := grace
	if f.Lives {
		wait += f.Session
	}
	if f.Others {
		wait = max(wait, LeaseLength(f.Session)+AfterLease(f.Session)+f.Session/20)
	}
	return wait
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
