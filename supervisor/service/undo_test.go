package service

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"understudy/election"
	"understudy/supervisor/host"
	"understudy/supervisor/service/role"
	"understudy/supervisor/unit"
)

// owing is a service that has stopped its programs, and whose undo fails so often.
func owing(t *testing.T, failures int) (v *Service, tries *int) {
	tries = new(int)
	return undoes(t, func(context.Context, []string) int {
		if *tries++; *tries <= failures {
			return 32
		}
		return 0
	}), tries
}

// undoes is one whose undo is run.
func undoes(t *testing.T, run func(context.Context, []string) int) *Service {
	guard := shell{run: run}
	v := made(t, Conf{}, func(n *LocalNode) {
		n.Commands = unit.NewCommands(func() host.Guard { return guard }, empty{}.Now)
	})
	v.Remember(CarriedService{Name: "db", PendingUndos: []unit.PendingUndo{{Name: "fs", Command: []string{"umount"}, Timeout: 10 * time.Second}}})
	v.state = role.State{Place: role.Undoing, Claimed: true, Cause: role.SwitchAsked}
	v.view.enter(v.state.Role(), election.SwitchAsked)
	t.Cleanup(v.Close)
	return v
}

// P2: an address or a mount that stays would be on two hosts.
func TestTheLockIsKeptUntilAllIsUndone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, tries := owing(t, 5)
		var told []bool
		stay := v.testStay(t.Context(), Session{Session: &election.Session{}}, shellTree{told: &told})
		done := make(chan role.Event, 1)
		go func() { done <- stay.Undo(t.Context()) }()
		time.Sleep(5 * time.Second)
		if synctest.Wait(); len(done) > 0 {
			t.Fatalf("%v, undone %d times", <-done, *tries)
		}
		if m := <-v.view.announcer.newest; m.Role != election.RoleStopping || m.Health != election.HealthFailing || m.Why != "not undone: fs: exit code 32, next try in 4s" {
			t.Errorf("status %+v", m)
		}
		if e := <-done; e.Kind != role.Undone || *tries != 6 || v.unit.HasPendingEffects() {
			t.Errorf("%v, undone %d times, still owed: %v", e.Kind, *tries, v.unit.PendingEffects())
		}
		if !slices.Equal(told, []bool{true}) {
			t.Errorf("the guardians are told %v", told)
		}
	})
}

// A supervisor that stops, or is asked twice to, cannot keep the lock for ever. It gives nothing back. Only one that stays goes on undoing.
func TestWhatIsNotUndoneIsLeftToTheNextSession(t *testing.T) {
	for name, leaves := range map[string]bool{"stops": true, "asked twice to stop": false} {
		synctest.Test(t, func(t *testing.T) {
			v, tries := owing(t, 40)
			leave, hurry := make(chan struct{}), make(chan struct{})
			v.node.Hurry = hurry
			var told []bool
			stay := v.testStay(t.Context(), Session{Session: &election.Session{}, Leave: leave}, shellTree{told: &told})
			done := make(chan role.Event, 1)
			go func() { done <- stay.Undo(t.Context()) }()
			began := time.Now()
			if leaves {
				close(leave)
			} else {
				close(hurry)
			}
			if e := <-done; e.Kind != role.NotUndone || leaves != (time.Since(began) == stopPatience) {
				t.Errorf("%s: %v after %v", name, e.Kind, time.Since(began))
			}
			if !slices.Equal(told, []bool{false}) { // then they close no session
				t.Errorf("%s: the guardians are told %v", name, told)
			}
			time.Sleep(time.Hour)
			if v.unit.HasPendingEffects() != leaves {
				t.Errorf("%s: owes %v after %d attempts", name, v.unit.HasPendingEffects(), *tries)
			}
		})
	}
}

// P1: a lease may end while an effect is undone, as of a node that is cut off. It is undone at once all the same: another node starts the
// service after a delay, and the next session may be far away.
func TestAnUndoThatTheLeasesEndInterruptsGoesOnAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		err := newEnsemble(t).open(func(ctx context.Context, s *election.Session) error {
			tries, leave := 0, make(chan struct{})
			v := undoes(t, func(ctx context.Context, _ []string) int {
				if tries++; tries > 1 {
					return 0
				}
				close(leave) // as at each end of a session
				s.Lease.Expire(election.ErrLeaseEnding)
				<-ctx.Done()
				return 137
			})
			stay := v.testStay(ctx, Session{Session: s, Leave: leave}, shellTree{})
			if e := stay.Undo(ctx); e.Kind != role.NotUndone {
				t.Errorf("%v", e.Kind)
			}
			time.Sleep(time.Second)
			if v.unit.HasPendingEffects() {
				t.Errorf("owes %v after %d attempts", v.unit.PendingEffects(), tries)
			}
			return nil
		})
		if !errors.Is(err, election.ErrLeaseEnding) {
			t.Error(err)
		}
	})
}

// Whoever stops waits for it: the tries are close together, and each of them counts, the last one among them.
func TestALateUndoOfASupervisorThatStopsCounts(t *testing.T) {
	for name, one := range map[string]struct {
		works, takes time.Duration // after the order, and from then on
		want         role.EventKind
		over         time.Duration
	}{
		"soon":               {5500 * time.Millisecond, 0, role.Undone, 6 * time.Second},
		"at the last moment": {29500 * time.Millisecond, 0, role.Undone, 30 * time.Second},
		"too late":           {30500 * time.Millisecond, 0, role.NotUndone, 30 * time.Second},
		"slow":               {26500 * time.Millisecond, 8 * time.Second, role.Undone, 35 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ordered := time.Now().Add(100 * time.Second) // by then the pauses are long
				works := func() bool { return time.Since(ordered) >= one.works }
				v := undoes(t, func(ctx context.Context, _ []string) int {
					if !works() {
						return 32
					}
					select {
					case <-time.After(one.takes):
						return 0
					case <-ctx.Done():
						return 137
					}
				})
				leave, told := make(chan struct{}), []bool{}
				stay := v.testStay(t.Context(), Session{Session: &election.Session{}, Leave: leave}, shellTree{told: &told})
				done := make(chan role.Event, 1)
				go func() { done <- stay.Undo(t.Context()) }()
				time.Sleep(time.Until(ordered))
				close(leave)
				if e := <-done; e.Kind != one.want || time.Since(ordered) != one.over || !slices.Equal(told, []bool{one.want == role.Undone}) {
					t.Errorf("%v after %v, told %v", e.Kind, time.Since(ordered), told)
				}
			})
		})
	}
}

// In place, a program is not started beside what it has left.
func TestNothingStartsBesideWhatIsNotUndone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, tries := owing(t, 1)
		v.state.Then = role.Judge
		stay := v.testStay(t.Context(), Session{Session: &election.Session{}}, shellTree{})
		for _, want := range []role.EventKind{role.NotUndone, role.Undone} {
			if e := stay.Undo(t.Context()); e.Kind != want {
				t.Errorf("%v after %d attempts, want %v", e.Kind, *tries, want)
			}
		}
	})
}

// P5: what its own host has to prove, no delay does.
func TestNoDelayIsAProofWhereTheBreadcrumbSaysSo(t *testing.T) {
	for name, crumb := range map[string]election.BreadCrumb{
		"alive":       {Leftover: election.Leftover{Known: true}},
		"not undone":  {Effects: election.Effects{Left: election.EffectsLeft{"vip"}}},
		"survives":    {Effects: election.Effects{Survive: election.EffectsLeft{"role"}}},
		"needs proof": {Effects: election.Effects{NeedProof: election.EffectsLeft{"data"}}},
	} {
		if undelayed(&crumb) == nil {
			t.Errorf("%s: a delay is a proof", name)
		}
	}
	if err := undelayed(&election.BreadCrumb{Effects: election.Effects{Names: []string{"vip"}, UndoMs: 1}}); err != nil {
		t.Error(err)
	}
}

// A term may end while the breadcrumb does not list its effects yet: then there is nothing to stop, and nothing to hand over.
func TestATermMayEndBeforeItsEffectsAreListed(t *testing.T) {
	v := made(t, Conf{}, nil)
	over, end := context.WithCancel(t.Context())
	end()
	stay := v.testStay(t.Context(), Session{Session: &election.Session{}}, shellTree{})
	if e := stay.HandOver(over); e.Kind != role.NotHandedOver {
		t.Errorf("handed over: %v", e.Kind)
	}
	if e := stay.Stop(over); e.Kind != role.Stopped {
		t.Errorf("stopped: %v", e.Kind)
	}
}
