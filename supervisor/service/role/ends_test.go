package role

import (
	"slices"
	"testing"
)

// at is how a service comes to a place: the events of a stay that lead there.
var at = func() map[Place][]EventKind {
	joined := []EventKind{Proved, Undone, Joined}
	standby := append(slices.Clone(joined), Prepared)
	claiming := append(slices.Clone(standby), LockFree)
	fencing := append(slices.Clone(claiming), Won)
	running := append(slices.Clone(fencing), PreviousDead, Armed)
	stopping := append(slices.Clone(running), Ended)
	judging := append(slices.Clone(stopping), Stopped, Proved, Undone)
	failed := append(slices.Clone(judging), Failed, Proved, Undone, Released, Recorded)
	return map[Place][]EventKind{
		EndingOld: nil, UndoingOld: joined[:1], Joining: joined[:2], Retrying: append(slices.Clone(joined[:2]), JoinFailed), Preparing: joined,
		Standby: standby, Blocked: append(slices.Clone(standby), HeldBack), Deferring: append(slices.Clone(standby), LeftToOther), Claiming: claiming,
		Fencing: fencing, Arming: append(slices.Clone(fencing), PreviousDead), Running: running, HandingOver: append(slices.Clone(running), HandAsked),
		Stopping: stopping, Clearing: append(slices.Clone(stopping), Stopped), Judging: judging, Waiting: append(slices.Clone(judging), Again),
		BackOff: failed,
	}
}()

// from drives a stay through a place, and then through other events. It returns what that leaves, and the places after it.
func from(t *testing.T, p Place, events ...EventKind) (State, []Place) {
	t.Helper()
	way := at[p]
	s, h := drive(t, State{}, append(slices.Clone(way), events...)...)
	if len(h.places) <= len(way) || h.places[len(way)] != p {
		t.Fatalf("%v does not lead to %v", h.places, p)
	}
	return s, h.places[len(way)+1:]
}

// What may end a term at any moment ends it in the same way everywhere: its programs are asked to end if they run, or a copy
// was taken to be promoted, and there is time for that, killed otherwise; then that is proved, undone, and the lock given back.
func TestWhatEndsATermEndsItEverywhere(t *testing.T) {
	for _, p := range []Place{Fencing, Arming, Running, Stopping, Clearing, Judging, Waiting} {
		for why, cause := range map[EventKind]EventKind{
			LockLost: LockLost, LeaseOver: LeaseOver, LeaseEnding: LeaseEnding, Expired: Expired, StopAsked: StopAsked, HandAsked: StopAsked,
		} {
			if p == Running && why == HandAsked {
				continue // they are handed over
			}
			rest, want := []EventKind{Proved, Undone, Released, Recorded}, []Place{Proving, Undoing, Releasing, Recording}
			if (p == Running || p == Arming) && why != LockLost && why != LeaseOver && why != Expired {
				rest, want = append([]EventKind{Stopped}, rest...), append([]Place{Stopping}, want...)
			}
			if why != StopAsked && why != HandAsked { // else the stay is over
				rest, want = append(rest, StayOver), append(want, Preparing)
			}
			s, went := from(t, p, append([]EventKind{why}, rest...)...)
			if want = append(want, Away); !slices.Equal(went, want) || s != (State{Cause: cause}) {
				t.Errorf("%v in %v: %v, %+v; want %v", why, p, went, s, want)
			}
		}
	}
}

// A term that was handed over ends as any other, if it cannot go on: its programs run already.
func TestATermThatGoesOnEndsAsAnyOther(t *testing.T) {
	for _, why := range []EventKind{LockLost, LeaseOver, LeaseEnding, Expired} {
		s, h := drive(t, State{Carried: true}, Joined, why, Proved, Undone, Released, Recorded, StayOver)
		if want := []Place{Joining, Resuming, Proving, Undoing, Releasing, Recording, Preparing, Away}; !slices.Equal(h.places, want) || s != (State{Cause: why}) {
			t.Errorf("%v: %v, %+v", why, h.places, s)
		}
	}
}

// While nothing runs, what would have ended a run ends the term; and what was only put off by a pause happens when that ends.
func TestATermEndsWhileItWaits(t *testing.T) {
	for why, rests := range map[EventKind]bool{SwitchAsked: false, PreferredBack: false, Done: true, Failed: true, HookFailed: true} {
		want := Preparing
		if rests {
			want = BackOff
		}
		_, went := from(t, Waiting, why, Proved, Undone, Released, Recorded, StayOver)
		if !slices.Equal(went, []Place{Proving, Undoing, Releasing, Recording, want, Away}) {
			t.Errorf("%v: %v", why, went)
		}
	}
}

// A stay ends wherever the service is; a tree in which nothing was started is ended first, with proof.
func TestAStayEndsEverywhere(t *testing.T) {
	for _, p := range []Place{EndingOld, UndoingOld, Joining, Retrying, Preparing, BackOff} {
		if _, went := from(t, p, StayOver); !slices.Equal(went, []Place{Away}) {
			t.Errorf("%v: %v", p, went)
		}
	}
	for _, p := range []Place{Standby, Blocked, Deferring, Claiming} {
		if _, went := from(t, p, StayOver, Proved); !slices.Equal(went, []Place{Discarding, Away}) {
			t.Errorf("%v: %v", p, went)
		}
		if s, went := from(t, p, StayOver, Unproved); !slices.Equal(went, []Place{Discarding, Away}) || !s.TreeUnproved {
			t.Errorf("%v, not proved: %v, %+v", p, went, s)
		}
	}
}

// A candidate that does not work is followed by another one, after a pause.
func TestACandidateThatDoesNotWorkIsReplaced(t *testing.T) {
	for _, p := range []Place{Preparing, BackOff} {
		if _, went := from(t, p, Trouble, Waited, StayOver); !slices.Equal(went, []Place{Retrying, Joining, Away}) {
			t.Errorf("%v: %v", p, went)
		}
	}
	for _, p := range []Place{Standby, Blocked, Deferring, Claiming} {
		if _, went := from(t, p, Trouble, Proved, Waited, StayOver); !slices.Equal(went, []Place{Discarding, Retrying, Joining, Away}) {
			t.Errorf("%v: %v", p, went)
		}
	}
	// It gave up before that, and still has to leave the lock to others.
	if s, went := from(t, BackOff, Trouble, Waited, Joined, StayOver); !slices.Equal(went, []Place{Retrying, Joining, BackOff, Away}) || !s.BackOffDue {
		t.Errorf("%v, %+v", went, s)
	}
}

// P5: a loss of ZooKeeper's data is waited out to the end before anything is claimed, in whatever session.
func TestALossOfDataIsWaitedOut(t *testing.T) {
	lost, err := Step(State{Place: Joining}, Event{Kind: Joined, DataLost: true})
	if err != nil || lost.Place != Quarantined {
		t.Fatalf("%+v: %v", lost, err)
	}
	s, err := Step(lost, Event{Kind: StayOver})
	if err != nil || s != (State{QuarantineDue: true}) {
		t.Fatalf("the session ends meanwhile: %+v: %v", s, err)
	}
	s, h := drive(t, s, Proved, Undone, Joined, Waited, Prepared, StayOver, Proved)
	if want := []Place{EndingOld, UndoingOld, Joining, Quarantined, Preparing, Standby, Discarding, Away}; !slices.Equal(h.places, want) || s != (State{}) {
		t.Errorf("%v, %+v", h.places, s)
	}
}

// P2: a term whose effects are not undone gives nothing back: its lock ends with its session. In place, nothing is started beside them.
func TestWhatIsNotUndoneIsNotGivenBack(t *testing.T) {
	if s, went := from(t, Running, SwitchAsked, Stopped, Proved, NotUndone); !slices.Equal(went, []Place{Stopping, Proving, Undoing, Away}) || s.Claimed {
		t.Errorf("%v, %+v", went, s)
	}
	_, went := from(t, Running, Ended, Stopped, Proved, NotUndone, Proved, Undone, Released, Recorded, StayOver)
	if want := []Place{Stopping, Clearing, Undoing, Proving, Undoing, Releasing, Recording, Preparing, Away}; !slices.Equal(went, want) {
		t.Errorf("%v", went)
	}
	_, went = from(t, Running, Ended, Stopped, Proved, LockLost, Proved, NotUndone)
	if want := []Place{Stopping, Clearing, Undoing, Proving, Undoing, Away}; !slices.Equal(went, want) {
		t.Errorf("%v", went)
	}
}
