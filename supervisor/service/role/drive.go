package role

import "context"

// Actions are the actions. Each blocks until it has one event to report.
type Actions interface {
	EndOld(context.Context) Event
	UndoOld(context.Context) Event
	Join(context.Context) Event
	Retry(context.Context) Event
	Quarantine(context.Context) Event
	Resume(context.Context) Event
	BackOff(context.Context) Event
	Prepare(context.Context) Event
	StandBy(context.Context) Event
	WaitAllowed(context.Context) Event
	Defer(context.Context) Event
	Claim(context.Context) Event
	Fence(context.Context) Event
	Arm(context.Context) Event
	Run(context.Context) Event
	HandOver(context.Context) Event
	Stop(context.Context) Event
	Clear(context.Context) Event
	Prove(context.Context) Event
	Undo(context.Context) Event
	Judge(context.Context) Event
	Wait(context.Context) Event
	Release(context.Context) Event
	Record(context.Context) Event
	Discard(context.Context) Event

	// Joined starts a candidate's helpers, and Parted ends them; now is where the candidacy led.
	Joined(context.Context)
	Parted(ctx context.Context, now State)
	// TreeMade gets a function that ends the candidacy or term that has a tree from here on: it ends the contexts of its actions.
	TreeMade(end context.CancelCauseFunc)
	// Moved is called after each step. err says that the event was not expected.
	Moved(was, now State, e Event, err error)
}

// Drive is one stay in a session, from its opening until the service is Away.
func Drive(ctx context.Context, s State, h Actions) State {
	return driver{h, actions(h)}.drive(ctx, s)
}

func (d driver) drive(ctx context.Context, s State) State {
	s = d.step(s, Event{Kind: Opened})
	for s.Place != Away {
		if s.Place.Joined() {
			s = d.driveCandidacy(ctx, s)
		} else {
			s = d.step(s, d.act[s.Place](ctx))
		}
	}
	return s
}

// driveCandidacy drives a candidacy.
func (d driver) driveCandidacy(ctx context.Context, s State) State {
	d.h.Joined(ctx)
	for s.Place.Joined() {
		if s.Place.HasTree() {
			s = d.driveTree(ctx, s)
		} else {
			s = d.step(s, d.act[s.Place](ctx))
		}
	}
	d.h.Parted(ctx, s)
	return s
}

// driver maps each place to the action of its hands.
type driver struct {
	h   Actions
	act [Places]func(context.Context) Event
}

// driveTree drives for as long as there is a tree.
func (d driver) driveTree(ctx context.Context, s State) State {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	d.h.TreeMade(end)
	for s.Place.HasTree() {
		s = d.step(s, d.act[s.Place](ctx))
	}
	return s
}

func (d driver) step(s State, e Event) State {
	next, err := Step(s, e)
	d.h.Moved(s, next, e, err)
	return next
}

func actions(h Actions) [Places]func(context.Context) Event {
	return [Places]func(context.Context) Event{
		EndingOld: h.EndOld, UndoingOld: h.UndoOld, Joining: h.Join, Retrying: h.Retry, Quarantined: h.Quarantine, Resuming: h.Resume,
		BackOff: h.BackOff, Preparing: h.Prepare, Standby: h.StandBy, Blocked: h.WaitAllowed, Deferring: h.Defer, Claiming: h.Claim,
		Fencing: h.Fence, Arming: h.Arm, Running: h.Run, HandingOver: h.HandOver, Stopping: h.Stop, Clearing: h.Clear, Proving: h.Prove,
		Undoing: h.Undo, Judging: h.Judge, Waiting: h.Wait, Releasing: h.Release, Recording: h.Record, Discarding: h.Discard,
	}
}
