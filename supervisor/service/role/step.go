package role

import "fmt"

// Then says what follows a term or a candidacy.
type Then uint8

// The values of Then.
const (
	Home   Then = iota // waiting for the lock
	Judge              // ask the restart policy once the tree is clear
	GiveUp             // other nodes may try
	Retry              // a pause, then another candidate
	Rejoin             // another candidate at once
	Leave              // the stay in the session ends
)

// State is all that decides, and all that a hand-over writes of the machine.
type State struct {
	Place             Place     `json:"-"`
	Then              Then      `json:"-"`
	Cause             EventKind `json:"-"` // of the newest end of a term
	Obstacle          Obstacle  `json:"-"`
	Claimed           bool      `json:"-"`                             // a claim is in our hands: only then Releasing
	Carried           bool      `json:"carried,omitempty"`             // a term was handed over, and has not gone on yet
	QuarantineDue     bool      `json:"quarantine_due,omitempty"`      // a quarantine is due before anything is claimed
	BackOffDue        bool      `json:"backoff_due,omitempty"`         // a backoff is due before anything is claimed
	BackOffUntilProof bool      `json:"backoff_until_proof,omitempty"` // it ends early once the previous active is known to be dead
	TreeUnproved      bool      `json:"-"`                             // a tree is not proved dead
}

func (s State) to(p Place) State { s.Place = p; return s }

// home is the next place of a candidate without a tree.
func (s State) home() State {
	s.Then = Home
	switch {
	case s.QuarantineDue:
		return s.to(Quarantined)
	case s.BackOffDue:
		return s.to(BackOff)
	}
	return s.to(Preparing)
}

// away ends the stay in the session. A claim goes with that.
func (s State) away() State {
	s.BackOffDue = s.BackOffDue || s.Then == GiveUp
	s.Then, s.Obstacle, s.Claimed = Home, NoObstacle, false
	return s.to(Away)
}

// end ends a term: politely if its programs should be asked first.
func (s State) end(why EventKind, then Then, polite bool) State {
	s.Cause, s.Then = why, then
	if polite {
		return s.to(Stopping)
	}
	return s.to(Proving)
}

// discard ends a candidacy that has a tree.
func (s State) discard(then Then) State {
	s.Then = then
	return s.to(Discarding)
}

// ended handles the events that end a term in the same way in every place, and reports whether this event is one of them.
func (s State) ended(k EventKind, polite bool) (State, bool) {
	switch k {
	case LockLost, LeaseOver, Expired:
		return s.end(k, Home, false), true // another node may be counting its grace delay
	case LeaseEnding:
		return s.end(k, Home, polite), true // there is time for that: a lease ends early enough
	case StopAsked:
		return s.end(k, Leave, polite), true
	case HandAsked: // no program runs that could be handed over
		return s.end(StopAsked, Leave, polite), true
	}
	return s, false
}

// after is the next place when a term or candidacy is over.
func (s State) after() State {
	switch s.Then {
	case Leave:
		return s.away()
	case Retry:
		return s.to(Retrying)
	case Rejoin:
		return s.to(Joining)
	case GiveUp:
		s.BackOffDue = true
	}
	return s.home()
}

// Step covers every event that the action of a place may report.
func Step(s State, e Event) (State, error) {
	if next, ok := step(s, e); ok {
		return next, nil
	}
	err := fmt.Errorf("%v is not expected in %v", e.Kind, s.Place)
	switch {
	case s.Place == Away:
		return s.away(), err
	case proofs.has(s.Place): // P2: keep the session while a process may be alive
		s.TreeUnproved = true
		return s.away(), err
	case s.Place.HasTree():
		s.Carried = false // nobody looks after its programs
		return s.end(LeaseEnding, Retry, false), err
	}
	return s.to(Retrying), err
}

func step(s State, e Event) (next State, ok bool) {
	switch {
	case arriving.has(s.Place):
		return stepArriving(s, e)
	case unstarted.has(s.Place):
		return stepUnstarted(s, e)
	case holding.has(s.Place):
		return stepHolding(s, e)
	}
	return stepEnding(s, e)
}

// stepArriving handles the places before a tree is made.
func stepArriving(s State, e Event) (State, bool) {
	if e.Kind == StayOver && s.Place != Away && s.Place != Resuming {
		return s.away(), true
	}
	switch s.Place {
	case Away:
		switch {
		case e.Kind == Opened && s.Carried:
			return s.to(Joining), true
		case e.Kind == Opened:
			return s.to(EndingOld), true
		}
	case EndingOld:
		switch e.Kind {
		case Proved:
			s.TreeUnproved = false
			return s.to(UndoingOld), true
		case Unproved:
			s.TreeUnproved = true
			return s.away(), true
		}
	case UndoingOld:
		if e.Kind == Undone {
			return s.to(Joining), true
		}
	case Joining:
		switch {
		case e.Kind == Joined:
			s.QuarantineDue = s.QuarantineDue || e.DataLost
			if s.Carried {
				return s.to(Resuming), true
			}
			return s.home(), true
		case e.Kind == JoinFailed && s.Carried: // P1: nobody watches its lock
			return s.dropped(), true
		case e.Kind == JoinFailed:
			return s.to(Retrying), true
		case e.Kind == HandAsked && s.Carried: // the next image goes on with it
			return s.away(), true
		}
	case Retrying:
		if e.Kind == Waited {
			return s.to(Joining), true
		}
	case Quarantined:
		if e.Kind == Waited {
			s.QuarantineDue = false
			return s.home(), true
		}
	case Resuming:
		switch e.Kind {
		case Resumed:
			s.Carried, s.Claimed = false, true
			return s.to(Running), true
		case CannotResume:
			return s.dropped(), true
		case HandAsked: // the next image goes on with it
			return s.away(), true
		}
		s.Carried, s.Claimed = false, true // nobody looks after its programs
		return s.ended(e.Kind, false)
	case BackOff:
		switch e.Kind {
		case Waited:
			s.BackOffDue, s.BackOffUntilProof = false, false
			return s.home(), true
		case Trouble:
			return s.to(Retrying), true
		}
	}
	return s, false
}

// dropped ends a term that was handed over and cannot go on: its lock ends with its session.
func (s State) dropped() State {
	s.Carried, s.Claimed = false, false
	return s.end(LeaseEnding, Leave, false)
}

// stepUnstarted handles the places where nothing has been started in the tree.
func stepUnstarted(s State, e Event) (State, bool) {
	switch s.Place {
	case Preparing:
		switch e.Kind {
		case Prepared:
			return s.to(Standby), true
		case Trouble:
			return s.to(Retrying), true
		case StayOver:
			return s.away(), true
		}
		return s, false
	case Discarding:
		switch e.Kind {
		case Proved:
			return s.after(), true
		case Unproved:
			s.TreeUnproved = true
			return s.away(), true
		}
		return s, false
	}
	switch e.Kind {
	case StayOver:
		return s.discard(Leave), true
	case Trouble:
		return s.discard(Retry), true
	}
	switch s.Place {
	case Standby, Blocked:
		switch {
		case e.Kind == LockFree:
			s.Obstacle = NoObstacle
			return s.to(Claiming), true
		case e.Kind == Reordered:
			return s.discard(Rejoin), true
		case e.Kind == HeldBack:
			s.Obstacle = e.Obstacle
			return s.to(Blocked), true
		case e.Kind == Allowed:
			s.Obstacle = NoObstacle
			return s.to(Standby), true
		case e.Kind == LeftToOther && s.Place == Standby:
			return s.to(Deferring), true
		}
	case Deferring:
		if e.Kind == Waited {
			return s.to(Standby), true
		}
	case Claiming:
		switch e.Kind {
		case Won:
			s.Claimed = true
			return s.to(Fencing), true
		case Taken:
			return s.to(Standby), true
		}
	}
	return s, false
}

// stepHolding handles the places from a lock that is ours to running programs.
func stepHolding(s State, e Event) (State, bool) {
	switch s.Place {
	case Fencing:
		switch e.Kind {
		case PreviousDead:
			return s.to(Arming), true
		case PreviousAlive:
			s.BackOffUntilProof = e.BackOffUntilProof
			return s.end(e.Kind, GiveUp, false), true
		case PauseAsked:
			return s.end(e.Kind, Home, false), true
		}
		return s.ended(e.Kind, false)
	case Arming:
		switch e.Kind {
		case Armed:
			return s.to(Running), true
		case Unarmed, Behind:
			return s.end(e.Kind, Home, true), true
		case NoCopy:
			return s.end(e.Kind, GiveUp, true), true
		}
		return s.ended(e.Kind, true) // a copy may have been taken
	case Running:
		switch e.Kind {
		case Ended, Changed:
			s.Then = Judge
			return s.to(Stopping), true
		case SwitchAsked, RestartAsked, StopOrdered, PreferredBack:
			return s.end(e.Kind, Home, true), true
		case NotReachable:
			return s.end(e.Kind, GiveUp, true), true
		case HandAsked, Outlasted:
			return s.to(HandingOver), true
		}
		return s.ended(e.Kind, true)
	case HandingOver:
		switch e.Kind {
		case HandedOver:
			s.Carried = true
			return s.away(), true
		case NotHandedOver:
			return s.end(StopAsked, Leave, true), true
		case StopAsked: // nobody can ask its programs any more
			return s.end(StopAsked, Leave, false), true
		case Expired:
			return s.end(Expired, Home, false), true
		}
	}
	return s, false
}

// stepEnding handles the places from the end of the programs, or of a term, to the next candidacy.
func stepEnding(s State, e Event) (State, bool) {
	judging := s.Then == Judge
	switch s.Place {
	case Stopping:
		switch {
		case e.Kind == Stopped && judging:
			return s.to(Clearing), true
		case e.Kind == Stopped:
			return s.to(Proving), true
		}
		return s.ended(e.Kind, false) // while the programs were asked to end
	case Clearing:
		if e.Kind == Proved {
			return s.to(Undoing), true
		}
		return s.ended(e.Kind, false)
	case Proving:
		switch e.Kind {
		case Proved:
			return s.to(Undoing), true
		case Unproved:
			s.TreeUnproved = true
			return s.away(), true
		}
	case Undoing:
		switch {
		case e.Kind == Undone && judging:
			return s.to(Judging), true
		case e.Kind == Undone && s.Claimed:
			return s.to(Releasing), true
		case e.Kind == Undone:
			return s.after(), true
		case e.Kind == NotUndone && judging: // P2: it is not started beside what it left
			return s.end(e.Kind, Home, false), true
		case e.Kind == NotUndone: // P2: the lock ends with its session, the breadcrumb stays
			return s.away(), true
		case judging:
			return s.ended(e.Kind, false)
		}
	case Judging, Waiting:
		switch e.Kind {
		case Again:
			return s.to(Waiting), s.Place == Judging
		case Waited:
			s.Then = Home
			return s.to(Running), s.Place == Waiting
		case Done, Failed, HookFailed:
			return s.end(e.Kind, GiveUp, false), true
		case RanOnce:
			return s.end(e.Kind, Leave, false), true
		case Yielded:
			return s.end(e.Kind, Home, false), s.Place == Judging
		case SwitchAsked, StopOrdered, PreferredBack:
			return s.end(e.Kind, Home, false), s.Place == Waiting
		}
		return s.ended(e.Kind, false)
	case Releasing:
		s.Claimed = false
		switch e.Kind {
		case Released:
			return s.to(Recording), true
		case NotReleased: // the lock ends with its session
			return s.away(), true
		}
	case Recording:
		if e.Kind == Recorded {
			return s.after(), true
		}
	}
	return s, false
}
