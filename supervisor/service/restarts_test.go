package service

import (
	"testing"
	"time"

	"understudy/supervisor/config"
)

func TestRestartsBackOffAndGiveUp(t *testing.T) {
	cfg := config.Restart{Policy: config.RestartOnFailure, Delay: time.Second, MaxDelay: 3 * time.Second, GiveUpAfter: 5, Within: time.Minute}
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
	cfg := config.Restart{Policy: config.RestartOnFailure, Delay: time.Second, MaxDelay: time.Second, GiveUpAfter: 5, Within: 2 * time.Minute}
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
		{config.RestartOnFailure, true, true, false},
		{config.RestartOnFailure, false, true, true},
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
	r := restarts{cfg: config.Restart{Policy: config.RestartOnFailure, Delay: time.Second, MaxDelay: time.Second, GiveUpAfter: 5, Within: time.Minute}}
	if v := r.ended(time.Now(), false, false); !v.again {
		t.Fatalf("first try: %+v", v)
	}
	if v := r.ended(time.Now(), false, false); v.again {
		t.Fatalf("second try: %+v, want to give up", v)
	}
}
