package supervisor

import (
	"testing"
	"time"

	"understudy/supervisor/config"
)

func TestRolesFollowATerm(t *testing.T) {
	steps := []struct {
		e    event
		role role
		do   action
	}{
		{sessionOpened, Standby, stand},
		{lockFree, Claiming, claim},
		{claimFailed, Standby, stand},
		{lockFree, Claiming, claim},
		{lockTaken, Standby, stand},
		{lockFree, Claiming, claim},
		{lockWon, Fencing, fence},
		{formerDead, Active, startChild},
		{lockLost, Stopping, stopChild},
		{treeDead, Stopping, releaseLock},
		{lockReleased, Standby, stand},
		{lockFree, Claiming, claim},
		{lockWon, Fencing, fence},
		{formerAlive, Stopping, stopChild},
		{treeDead, Stopping, releaseLock},
		{lockReleased, Failed, rest},
		{sessionOver, Offline, nothing},
		{sessionOpened, Failed, rest},
		{rested, Standby, stand},
		{servicePaused, Paused, nothing},
		{lockFree, Paused, nothing},
		{serviceResumed, Standby, stand},
		{lockFree, Claiming, claim},
		{lockWon, Fencing, fence},
		{formerDead, Active, startChild},
		{servicePaused, Active, nothing},
		{preferredBack, Stopping, stopChild},
		{treeDead, Stopping, releaseLock},
		{lockReleased, Standby, stand},
		{lockFree, Claiming, claim},
		{lockWon, Fencing, fence},
		{formerDead, Active, startChild},
		{switchAsked, Stopping, stopChild},
		{treeDead, Stopping, releaseLock},
		{lockReleased, Standby, stand},
		{lockFree, Claiming, claim},
		{lockWon, Fencing, fence},
		{formerDead, Active, startChild},
		{hookFailed, Stopping, stopChild},
		{treeDead, Stopping, releaseLock},
		{lockReleased, Failed, rest},
		{servicePaused, Failed, nothing},
		{rested, Standby, stand},
		{lockFree, Claiming, claim},
		{lockWon, Fencing, fence},
		{unarmed, Stopping, stopChild},
		{treeDead, Stopping, releaseLock},
		{lockReleased, Standby, stand},
	}
	var s state
	for i, st := range steps {
		var do action
		if s, do = step(s, st.e); s.role != st.role || do != st.do {
			t.Fatalf("step %d, %v: role %v action %d, want %v %d", i, st.e, s.role, do, st.role, st.do)
		}
	}
}

// FuzzRoles feeds any sequence of events: the promises are the machine's, not its driver's.
func FuzzRoles(f *testing.F) {
	f.Add([]byte{byte(sessionOpened), byte(lockFree), byte(lockWon), byte(formerDead), byte(childFailed), byte(treeDead), byte(lockReleased)})
	f.Add([]byte{byte(sessionOpened), byte(lockFree), byte(lockWon), byte(formerAlive), byte(treeDead), byte(lockReleased), byte(rested), byte(sessionOver)})
	f.Fuzz(func(t *testing.T, events []byte) {
		var s state
		fenced, childMayRun := false, false
		for _, b := range events {
			e := event(b % byte(len(eventNames)))
			was := s
			var do action
			s, do = step(s, e)
			switch e {
			case lockWon:
				fenced = false
			case formerDead:
				fenced = was.role == Fencing
			}
			proved := e == treeDead
			if do == startChild {
				if !fenced || was.role != Fencing { // P5
					t.Fatalf("child started from %v on %v", was.role, e)
				}
				childMayRun = true
			}
			if do == releaseLock && !proved { // P2
				t.Fatalf("lock released on %v", e)
			}
			if proved && was.role == Stopping {
				childMayRun = false
			}
			if s.role == Standby && childMayRun && e != sessionOpened {
				t.Fatalf("standing by with a child that may run, after %v", e)
			}
			if e == sessionOver {
				childMayRun = false // its sender says that nothing is left alive
			}
		}
	})
}

func TestEveryPairOfRoleAndEventHasAnAnswer(t *testing.T) {
	for r := range roleNames {
		for e := range eventNames {
			next, _ := step(state{role: role(r)}, event(e))
			if int(next.role) >= len(roleNames) {
				t.Errorf("%v, %v leads to role %d", role(r), event(e), next.role)
			}
		}
	}
}

func TestRestartsBackOffAndGiveUp(t *testing.T) {
	cfg := config.Restart{Policy: "on-failure", Delay: time.Second, MaxDelay: 3 * time.Second, GiveUpAfter: 5, Within: time.Minute}
	now := time.Unix(0, 0)
	r := restarts{cfg: cfg}
	for i, want := range []time.Duration{1, 2, 3, 3} {
		if v := r.ended(now, false, true); !v.again || v.after != want*time.Second {
			t.Fatalf("failure %d: %+v, want again after %ds", i+1, v, want)
		}
	}
	if v := r.ended(now, false, true); v.again {
		t.Fatalf("fifth failure: %+v, want to give up", v)
	}
	if v := r.ended(now, false, true); !v.again || v.after != time.Second {
		t.Fatalf("after giving up: %+v, want a new start", v)
	}
	if v := r.ended(now.Add(2*time.Minute), false, true); !v.again || v.after != time.Second {
		t.Fatalf("an old failure still counts: %+v", v)
	}
}

func TestWhatNeverGetsReadyIsGivenUpHoweverLongThatTakes(t *testing.T) {
	cfg := config.Restart{Policy: "on-failure", Delay: time.Second, MaxDelay: time.Second, GiveUpAfter: 5, Within: 2 * time.Minute}
	now := time.Unix(0, 0)
	r := restarts{cfg: cfg}
	for i := range 5 {
		now = now.Add(time.Minute)
		r.slow(time.Minute)
		if v := r.ended(now, false, true); v.again != (i < 4) {
			t.Fatalf("failure %d: again %v", i+1, v.again)
		}
		now = now.Add(time.Second)
	}
}

func TestRestartPolicies(t *testing.T) {
	for _, c := range []struct {
		policy      config.RestartPolicy
		ok, started bool
		again       bool
	}{
		{"on-failure", true, true, false},
		{"on-failure", false, true, true},
		{"always", true, true, true},
		{"always", false, true, true},
		{"never", false, true, false},
		{"never", true, true, false},
		{"never", false, false, true}, // it has not run yet
	} {
		r := restarts{cfg: config.Restart{Policy: c.policy, Delay: time.Second, MaxDelay: time.Second, GiveUpAfter: 3, Within: time.Minute}}
		if v := r.ended(time.Now(), c.ok, c.started); v.again != c.again {
			t.Errorf("%+v: again %v", c, v.again)
		}
	}
}

func TestProgramThatCannotBeStartedIsGivenUpSoon(t *testing.T) {
	r := restarts{cfg: config.Restart{Policy: "on-failure", Delay: time.Second, MaxDelay: time.Second, GiveUpAfter: 5, Within: time.Minute}}
	if v := r.ended(time.Now(), false, false); !v.again {
		t.Fatalf("first try: %+v", v)
	}
	if v := r.ended(time.Now(), false, false); v.again {
		t.Fatalf("second try: %+v, want to give up", v)
	}
}
