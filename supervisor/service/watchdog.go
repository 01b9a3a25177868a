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
func deviceIn(lease time.Duration, w *config.Watchdog) (child.Watchdog, error) {
	d := child.Watchdog{Path: w.Device, Timeout: election.Watchdog(lease), After: election.AfterLease(lease)}
	if d.Timeout <= 0 {
		return d, fmt.Errorf("a lease of %v is too short for a watchdog", lease)
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
func (a *armable) checkUntilArmable(ctx context.Context, lease func() time.Duration) {
	if !a.required() {
		return
	}
	for {
		if was := a.found.read(); !was.known || was.why != "" {
			now := fitness{known: true}
			w, err := deviceIn(lease(), a.watchdog)
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
