package guard

import (
	"errors"
	"testing"
	"time"
)

// P3: setting a shorter timeout feeds the watchdog once, so it must still act before a death has to be proved.
func TestAWatchdogIsSetToAShorterTimeoutOnlyInTime(t *testing.T) {
	const now = time.Hour
	for name, c := range map[string]struct {
		fed, timeout, left time.Duration
		needed, late       bool
	}{
		"it is short enough":                 {3 * time.Second, 3 * time.Second, 0, false, false},
		"in time":                            {time.Minute, 3 * time.Second, 2 * time.Second, true, false},
		"too late":                           {time.Minute, 3 * time.Second, 2*time.Second - 1, true, true},
		"no watchdog has so short a timeout": {time.Minute, time.Second - 1, time.Hour, true, true},
	} {
		s := &State{watchdog: &Message{Grace: c.fed}}
		needed, err := s.Refit(now, now+c.left, Fit{Timeout: c.timeout, After: time.Second})
		if needed != c.needed || errors.Is(err, errTooShort) != c.late {
			t.Errorf("%s: %v, %v", name, needed, err)
		}
	}
}
