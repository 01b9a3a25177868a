package guard

import (
	"slices"
	"time"
)

// Feed makes the guardians feed a watchdog.
func (l *Ledger) Feed(now, timeout time.Duration, device any) (seq uint64) {
	l.watchdog = &Message{Op: OpWatchdog, Grace: timeout, Along: device}
	return l.to.ask(now, l.watchdog)
}

// Fed is the timeout of the watchdog that the guardians feed; 0: there is none.
func (l *Ledger) Fed() time.Duration {
	if l.watchdog == nil {
		return 0
	}
	return l.watchdog.Grace
}

// Unfeed makes the guardians close the watchdog, unless a tree needs it.
func (l *Ledger) Unfeed(now time.Duration) (seq uint64, needed bool) {
	for _, e := range l.epochs {
		if slices.ContainsFunc(e.trees, func(t *Entry) bool { return t.armed && !t.dead }) {
			return 0, true
		}
	}
	l.watchdog = nil
	return l.to.ask(now, &Message{Op: OpUnwatch}), false
}
