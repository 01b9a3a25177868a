package ocf

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// mostFailures in a row of the monitor action end a watch. One that says that it is not running ends it at once.
const mostFailures = 3

// Watch runs the agent's monitor action, calls ready after the first success, and goes on as often as the action's interval says, until
// the context ends or the resource has failed.
func (r Resource) Watch(ctx context.Context, monitor Action, ready func() error, say func(line string)) error {
	for failures := 0; ; {
		err := r.Run(ctx, monitor)
		failed, code := errors.AsType[*Failed](err)
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil:
			if ready != nil {
				if err := ready(); err != nil {
					return err
				}
				ready = nil
			}
			failures = 0
		case ready != nil || code && failed.Code == NotRunning:
			return err
		default:
			if failures++; failures == mostFailures {
				return err
			}
			say(fmt.Sprintf("failure %d of %d: %v", failures, mostFailures, err))
		}
		pause := time.NewTimer(monitor.Interval)
		select {
		case <-pause.C:
		case <-ctx.Done():
		}
		pause.Stop()
	}
}
