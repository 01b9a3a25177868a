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
