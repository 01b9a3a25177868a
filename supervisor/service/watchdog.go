package service

import (
	"context"
	"fmt"
	"time"

	"understudy/election"
	"understudy/supervisor/child"
	"understudy/supervisor/config"
	"understudy/supervisor/host"
	"understudy/supervisor/wait"
)

// deviceIn returns the settings of the watchdog's device in a session.
func deviceIn(session time.Duration, w *config.Watchdog) (child.Watchdog, error) {
	d := child.Watchdog{Path: w.Device, Timeout: election.Watchdog(session), After: election.AfterLease(session)}
	if d.Timeout <= 0 {
		return d, fmt.Errorf("the session timeout of %v, which ZooKeeper granted, is too short for a watchdog", session)
	}
	return d, nil
}

// tryAgain is how long a node that cannot arm its watchdog waits before it tries again.
const tryAgain = 2 * time.Second

// armable notes whether this node can arm its watchdog, if that is required: otherwise it is no candidate.
type armable struct {
	watchdog *config.Watchdog // nil: none is used
	guard    func() host.Guard
	found    finding
}

func (a *armable) required() bool {
	return a.watchdog != nil && a.watchdog.Mode == config.WatchdogRequired
}

// checkUntilArmable checks whether the watchdog can be armed, and retries while it cannot.
func (a *armable) checkUntilArmable(ctx context.Context, session func() time.Duration) {
	if !a.required() {
		return
	}
	for {
		if was := a.found.read(); !was.known || was.why != "" {
			now := fitness{known: true}
			w, err := deviceIn(session(), a.watchdog)
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
