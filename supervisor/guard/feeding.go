package guard

import (
	"slices"
	"time"
)

// Feed makes the guardians feed a watchdog.
func (s *State) Feed(now, timeout time.Duration, device any) (seq uint64) {
	s.watchdog = &Message{Op: OpWatchdog, Grace: timeout, Along: device}
	return s.to.ask(now, s.watchdog)
}

// Retime tells the guardians that the watchdog has another timeout.
func (s *State) Retime(timeout time.Duration) {
	s.watchdog = &Message{Op: OpWatchdog, Grace: timeout, Along: s.watchdog.Along}
	s.to.broadcast(s.watchdog)
}

// Fed is the timeout of the watchdog that the guardians feed; 0: there is none.
func (s *State) Fed() time.Duration {
	if s.watchdog == nil {
		return 0
	}
	return s.watchdog.Grace
}

// Unfeed makes the guardians close the watchdog, unless a tree needs it.
func (s *State) Unfeed(now time.Duration) (seq uint64, needed bool) {
	for _, e := range s.leases {
		if slices.ContainsFunc(e.trees, func(t *Tree) bool { return t.armed && !t.dead }) {
			return 0, true
		}
	}
	s.watchdog = nil
	return s.to.ask(now, &Message{Op: OpUnwatch}), false
}

// Refit reports whether the watchdog needs a shorter timeout for a lease that has become shorter. Setting it feeds the device once: the
// supervisor must not do that too late.
func (s *State) Refit(now, deadline time.Duration, fit Fit) (needed bool, err error) {
	if s.Fed() <= fit.Timeout {
		return false, nil
	}
	if fit.Timeout < time.Second || now+fit.Timeout > deadline+fit.After {
		return true, errTooShort
	}
	return true, nil
}
