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

// Retime tells the guardians that the watchdog has another timeout.
func (l *Ledger) Retime(timeout time.Duration) {
	l.watchdog = &Message{Op: OpWatchdog, Grace: timeout, Along: l.watchdog.Along}
	l.to.broadcast(l.watchdog)
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

// Refit reports whether the watchdog needs a shorter timeout for a lease that has become shorter. Setting it feeds the device once: the
// supervisor must not do that too late.
func (l *Ledger) Refit(now, deadline time.Duration, fit Fit) (needed bool, err error) {
	if l.Fed() <= fit.Timeout {
		return false, nil
	}
	if fit.Timeout < time.Second || now+fit.Timeout > deadline+fit.After {
		return true, errTooShort
	}
	return true, nil
}
