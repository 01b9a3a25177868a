package role

import (
	"context"
	"testing"
)

// Every path, over all events: what may follow what.
func TestPromisesHoldOnEveryPath(t *testing.T) {
	steps, expected := 0, 0
	reach(func(s State, e Event, next State, err error) {
		steps++
		bad := func(promise string) { t.Errorf("%s: %+v, %v -> %+v", promise, s, e.Kind, next) }
		if next.Place == Running && s.Place != Arming && s.Place != Resuming && s.Place != Waiting {
			bad("P5, a start that nothing precedes")
		}
		if next.Place == Arming && (s.Place != Fencing || e.Kind != PreviousDead) {
			bad("P5, the former active is not known to be dead")
		}
		if next.Place == Releasing && (s.Place != Undoing || e.Kind != Undone || !s.Claimed) {
			bad("P2, a release of what may be alive")
		}
		if next.Place == Undoing && (e.Kind != Proved || s.Place != Proving && s.Place != Clearing) {
			bad("P2, an undo beside what may be alive")
		}
		if next.TreeUnproved && next.Place != Away && next.Place != EndingOld {
			bad("P2, going on beside what may be alive")
		}
		if next.Place == Claiming && (next.QuarantineDue || next.BackOffDue || next.Carried || next.Claimed) {
			bad("P1, a claim that is not due")
		}
		if next.Claimed && (arriving | unstarted).has(next.Place) && next.Place != Claiming {
			bad("a claim is forgotten")
		}
		if s.Claimed && !next.Claimed && s.Place != Releasing && next.Place != Away {
			bad("a claim is forgotten")
		}
		if s.Place.HasTree() && !next.Place.HasTree() && err == nil {
			switch s.Place {
			case Discarding, Recording, Releasing, HandingOver, Undoing, Proving, Resuming:
			default:
				bad("a tree is forgotten")
			}
			if (s.Place == Proving || s.Place == Discarding) && e.Kind != Proved && !next.TreeUnproved {
				bad("P2, a death that is not proved is forgotten")
			}
		}
		if err != nil {
			if s.Place.HasTree() && next.Place != Proving && !(next.Place == Away && next.TreeUnproved) {
				bad("an event that is not expected does not end the term")
			}
			return
		}
		expected++
	})
	t.Log(steps, "steps,", expected, "expected")
}

// Two that come together are one event, the same whoever looked first.
func TestWhatAllowsTheLeastCountsFirst(t *testing.T) {
	all := Ends{LockLost: true, LeaseOver: true, Expired: true, LeaseEnding: true, StayOver: true, Handing: true}
	for _, step := range []struct {
		want  EventKind
		clear func()
	}{
		{LeaseOver, func() { all.LeaseOver = false }}, {Expired, func() { all.Expired = false }},
		{LockLost, func() { all.LockLost = false }}, {LeaseEnding, func() { all.LeaseEnding = false }},
		{HandAsked, func() { all.Handing = false }}, {StopAsked, func() { all.StayOver = false }},
	} {
		if e, ok := all.Rank(); !ok || e.Kind != step.want {
			t.Errorf("%+v ranks %v, want %v", all, e.Kind, step.want)
		}
		step.clear()
	}
	if e, ok := all.Rank(); ok {
		t.Errorf("nothing ranks %v", e.Kind)
	}
}

// scripted are hands that report what a test says, and note which action was asked.
type scripted struct {
	Actions
	t      *testing.T
	events []EventKind
	places []Place
	trees  int
}

func (h *scripted) next(context.Context) Event {
	if len(h.events) == 0 {
		h.t.Fatalf("asked for more, after %v", h.places)
	}
	k := h.events[0]
	h.events = h.events[1:]
	return Event{Kind: k}
}

func (h *scripted) Joined(context.Context)        {}
func (h *scripted) Parted(context.Context, State) {}

func (h *scripted) TreeMade(context.CancelCauseFunc) { h.trees++ }

func (h *scripted) Moved(was, now State, e Event, err error) {
	if err != nil {
		h.t.Errorf("%+v: %v", was, err)
	}
	h.places = append(h.places, now.Place)
}

func drive(t *testing.T, s State, events ...EventKind) (State, *scripted) {
	h := &scripted{t: t, events: events}
	d := driver{h: h}
	for p := range d.act {
		d.act[p] = h.next
	}
	s = d.drive(t.Context(), s)
	if len(h.events) > 0 {
		t.Errorf("away with %v to come, after %v", h.events, h.places)
	}
	return s, h
}

// A day of a service: each event leads where the next one is expected.
func TestATermFromItsClaimToTheNext(t *testing.T) {
	s, h := drive(t, State{},
		Proved, Undone, Joined, Prepared, LockFree, Won, PreviousDead, Armed, // runs
		Ended, Stopped, Proved, Undone, Again, Waited, // again, in place
		Changed, Stopped, Proved, Undone, Again, Waited,
		Ended, Stopped, Proved, Undone, Failed, Proved, Undone, Released, Recorded, // gives up
		Waited, Prepared, LeftToOther, Waited, LockFree, Taken, // others go first
		HeldBack, Allowed, LockFree, Won, PreviousDead, Armed,
		SwitchAsked, Stopped, Proved, Undone, Released, Recorded, // moves
		Prepared, Reordered, Proved, Joined, Prepared, LockFree, Won, PreviousDead, Armed,
		LockLost, Proved, Undone, Released, Recorded,
		Prepared, StayOver, Proved)
	if s != (State{Cause: LockLost}) {
		t.Errorf("ends as %+v", s)
	}
	if h.trees != 5 {
		t.Errorf("%d trees", h.trees)
	}
}

// A term goes on over any number of images, and is dropped, with proof, where it cannot.
func TestATermIsHandedOverAndDropped(t *testing.T) {
	s, _ := drive(t, State{}, Proved, Undone, Joined, Prepared, LockFree, Won, PreviousDead, Armed, HandAsked, HandedOver)
	if s != (State{Carried: true}) {
		t.Fatalf("hands over %+v", s)
	}
	s, _ = drive(t, s, Joined, Resumed, HandAsked, HandedOver)
	s, _ = drive(t, s, Joined, HandAsked)
	s, _ = drive(t, s, Joined, CannotResume, Proved, Undone)
	if s != (State{Cause: LeaseEnding}) {
		t.Errorf("ends as %+v", s)
	}
}

// What a stay leaves to the next one.
func TestWhatASessionLeavesToTheNext(t *testing.T) {
	running := []EventKind{Proved, Undone, Joined, Prepared, LockFree, Won, PreviousDead, Armed}
	s, _ := drive(t, State{}, append(running, Ended, Stopped, Proved, Undone, Failed, Unproved)...)
	if s != (State{TreeUnproved: true, BackOffDue: true, Cause: Failed}) {
		t.Fatalf("leaves %+v", s)
	}
	if s, h := drive(t, s, Unproved); !s.TreeUnproved || len(h.places) != 2 {
		t.Errorf("goes on beside what may be alive: %+v, %v", s, h.places)
	}
	s, h := drive(t, s, Proved, Undone, Joined, StayOver)
	if !s.BackOffDue || h.places[len(h.places)-2] != BackOff {
		t.Errorf("does not rest: %+v, %v", s, h.places)
	}
}

func TestEveryPlaceHasAnActionAndAName(t *testing.T) {
	for p, act := range actions(&stub{}) {
		if (act == nil) != (Place(p) == Away) {
			t.Errorf("action of %v", Place(p))
		}
		if Place(p).String() == "" {
			t.Errorf("place %d has no name", p)
		}
	}
	for k := range Kinds {
		if k.String() == "" {
			t.Errorf("kind %d has no name", k)
		}
	}
}

type stub struct{ Actions }

// No place is left to a function that does not know it.
func TestEachPlaceIsInOneSet(t *testing.T) {
	for p := range Places {
		n := 0
		for _, s := range []set{arriving, unstarted, holding, ending} {
			if s.has(p) {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%v is in %d", p, n)
		}
	}
}
