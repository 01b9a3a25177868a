package ocf

import (
	"context"
	"time"
)

// Watch runs the agent's monitor action, calls ready after the first success, and goes on as often as the action's interval says, until
// the context ends or one fails.
func (r Resource) Watch(ctx context.Context, monitor Action, ready func() error) error {
	for first := true; ; first = false {
		if err := r.Run(ctx, monitor); err != nil || ctx.Err() != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		if first {
			if err := ready(); err != nil {
				return err
			}
		}
		pause := time.NewTimer(monitor.Interval)
		select {
		case <-pause.C:
		case <-ctx.Done():
		}
		pause.Stop()
	}
}
