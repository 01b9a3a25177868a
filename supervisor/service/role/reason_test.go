package role

import "testing"

// Scripts read these words, in the log, in the history and over HTTP: whoever changes one says so in the CHANGELOG.
func TestReasonsOfRoleChanges(t *testing.T) {
	for _, c := range []struct {
		was  State
		e    Event
		want string // role, and why
	}{
		{State{Place: UndoingOld}, Event{Kind: Undone}, "standby, session opened"},
		{State{Place: UndoingOld, BackOffDue: true}, Event{Kind: Undone}, "failed, session opened"},
		{State{Carried: true}, Event{Kind: Opened}, "active, taken over"},
		{State{Place: Joining, Carried: true}, Event{Kind: JoinFailed}, "stopping, lease ending"},
		{State{Place: Joining, Carried: true}, Event{Kind: HandAsked}, "offline, session over"},
		{State{Place: Joining}, Event{Kind: StayOver}, "offline, session over"},
		{State{Place: Resuming, Carried: true}, Event{Kind: CannotResume}, "stopping, lease ending"},
		{State{Place: Resuming, Carried: true}, Event{Kind: HandAsked}, "offline, session over"},
		{State{Place: Resuming, Carried: true}, Event{Kind: StopAsked}, "stopping, stop asked"},
		{State{Place: BackOff, BackOffDue: true}, Event{Kind: Waited}, "standby, waited after a failure"},
		{State{Place: BackOff, BackOffDue: true}, Event{Kind: StayOver}, "offline, session over"},
		{State{Place: Standby}, Event{Kind: LockFree}, "claiming, lock free"},
		{State{Place: Standby}, Event{Kind: HeldBack, Obstacle: Paused}, "paused, service paused"},
		{State{Place: Discarding, Then: Leave}, Event{Kind: Proved}, "offline, session over"},
		{State{Place: Blocked, Obstacle: Paused}, Event{Kind: Allowed}, "standby, service resumed"},
		{State{Place: Blocked, Obstacle: Paused}, Event{Kind: HeldBack, Obstacle: CannotStart}, "standby, service resumed"},
		{State{Place: Blocked, Obstacle: Paused}, Event{Kind: StayOver}, "paused, session over"},
		{State{Place: Claiming}, Event{Kind: Taken}, "standby, lock taken"},
		{State{Place: Claiming}, Event{Kind: Trouble}, "standby, claim failed"},
		{State{Place: Claiming}, Event{Kind: StayOver}, "standby, session over"},
		{State{Place: Claiming}, Event{Kind: Won}, "fencing, lock won"},
		{State{Place: Fencing}, Event{Kind: PreviousAlive}, "stopping, the previous node's program may be alive"},
		{State{Place: Fencing}, Event{Kind: PauseAsked}, "stopping, service paused"},
		{State{Place: Fencing}, Event{Kind: LockLost}, "stopping, lock lost"},
		{State{Place: Fencing}, Event{Kind: LeaseEnding}, "stopping, lease ending"},
		{State{Place: Fencing}, Event{Kind: Expired}, "stopping, session expired"},
		{State{Place: Fencing}, Event{Kind: StopAsked}, "stopping, stop asked"},
		{State{Place: Fencing}, Event{Kind: HandAsked}, "stopping, stop asked"},
		{State{Place: Arming}, Event{Kind: Armed}, "active, no other node runs it"},
		{State{Place: Arming}, Event{Kind: Unarmed}, "stopping, watchdog not armed"},
		{State{Place: Running}, Event{Kind: LockLost}, "stopping, lock lost"},
		{State{Place: Running}, Event{Kind: LeaseOver}, "stopping, lease ending"},
		{State{Place: Running}, Event{Kind: LeaseEnding}, "stopping, lease ending"},
		{State{Place: Running}, Event{Kind: Expired}, "stopping, session expired"},
		{State{Place: Running}, Event{Kind: StopAsked}, "stopping, stop asked"},
		{State{Place: Running}, Event{Kind: SwitchAsked}, "stopping, switchover"},
		{State{Place: Running}, Event{Kind: PreferredBack}, "stopping, preferred node back"},
		{State{Place: Running}, Event{Kind: NotReachable}, "stopping, not reachable"},
		{State{Place: Running}, Event{Kind: Ended}, "active, "},
		{State{Place: Stopping, Then: Judge}, Event{Kind: Stopped}, "active, "},
		{State{Place: Clearing, Then: Judge}, Event{Kind: Proved}, "active, "},
		{State{Place: Undoing, Then: Judge}, Event{Kind: Undone}, "active, "},
		{State{Place: Proving, Then: GiveUp}, Event{Kind: Proved}, "stopping, "},
		{State{Place: HandingOver}, Event{Kind: HandedOver}, "offline, given to the next version"},
		{State{Place: HandingOver}, Event{Kind: NotHandedOver}, "stopping, stop asked"},
		{State{Place: Judging}, Event{Kind: Done}, "stopping, program done"},
		{State{Place: Judging}, Event{Kind: Failed}, "stopping, program failed"},
		{State{Place: Judging}, Event{Kind: HookFailed}, "stopping, on_active failed"},
		{State{Place: Judging}, Event{Kind: RanOnce}, "stopping, program ran once"},
		{State{Place: Proving}, Event{Kind: Unproved}, "offline, session over"},
		{State{Place: Releasing}, Event{Kind: Released}, "standby, lock released"},
		{State{Place: Releasing, Then: GiveUp}, Event{Kind: Released}, "failed, lock released"},
		{State{Place: Releasing, Then: Leave}, Event{Kind: Released}, "offline, lock released"},
		{State{Place: Releasing, Then: Leave}, Event{Kind: NotReleased}, "offline, session over"},
		{State{Place: Releasing}, Event{Kind: NotReleased}, "offline, session over"},
		{State{Place: Running}, Event{Kind: Undone}, "stopping, lease ending"}, // which it does not expect
	} {
		now, _ := Step(c.was, c.e)
		if got := string(now.Role()) + ", " + string(Why(c.was, now, c.e)); got != c.want {
			t.Errorf("%+v, %v: %s; want %s", c.was, c.e.Kind, got, c.want)
		}
	}
}

// Nobody is told of another role without a reason.
func TestEveryRoleChangeHasAReason(t *testing.T) {
	reach(func(was State, e Event, now State, err error) {
		if err == nil && was.Role() != now.Role() && Why(was, now, e) == "" {
			t.Errorf("%+v, %v -> %v", was, e.Kind, now.Place)
		}
	})
}
