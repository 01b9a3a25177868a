package service

import (
	"context"
	"fmt"
	"time"

	"understudy/election"
	"understudy/supervisor/child"
	"understudy/supervisor/wait"
)

// Watchdog is the device that resets this machine when a child outlives its lease.
type Watchdog struct {
	Device   string
	Required bool // a node that cannot arm it is no candidate
}

// of is how the device is used in a session.
func (w *Watchdog) of(session time.Duration) (child.Watchdog, error) {
	d := child.Watchdog{Path: w.Device, Timeout: election.Watchdog(session), After: election.AfterLease(session)}
	if d.Timeout <= 0 {
		return d, fmt.Errorf("the session timeout of %v, which ZooKeeper granted, is too short for a watchdog", session)
	}
	return d, nil
}

// tryAgain is how long a node that cannot arm its watchdog waits before it tries again.
const tryAgain = 2 * time.Second

// armable is whether this node's watchdog, if it is required, can be armed: without that it is no candidate.
type armable struct {
	watchdog *Watchdog // nil: none is used
	guard    func() Guard
	found    finding
}

func (a *armable) required() bool { return a.watchdog != nil && a.watchdog.Required }

// keep finds out whether it can be armed, and goes on trying while it cannot.
func (a *armable) keep(ctx context.Context, session func() time.Duration) {
	if !a.required() {
		return
	}
	for {
		if was := a.found.read(); !was.known || was.why != "" {
			now := fitness{known: true}
			w, err := a.watchdog.of(session())
			if err == nil {
				err = a.guard().CheckWatchdog(ctx, w)
			}
			if err != nil {
				now.why = err.Error()
			}
			if ctx.Err() != nil {
				return
			}
			a.found.write(now)
		}
		if !wait.For(ctx, tryAgain) {
			return
		}
	}
}
