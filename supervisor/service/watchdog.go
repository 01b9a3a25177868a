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
	Required bool // without it, this node is no candidate
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

// keepTamed finds out whether a watchdog that is required can be armed, and goes on trying while it cannot.
func (v *Service) keepTamed(ctx context.Context, session func() time.Duration) {
	w := v.node.Watchdog
	if w == nil || !w.Required {
		return
	}
	for {
		was := look(&v.inbox, func() fitness { return v.inbox.tamed })
		if !was.known || was.why != "" {
			now := fitness{known: true}
			dog, err := w.of(session())
			if err == nil {
				err = v.node.Guard().CheckWatchdog(ctx, dog)
			}
			if err != nil {
				now.why = err.Error()
			}
			if ctx.Err() != nil {
				return
			}
			if now != was {
				v.inbox.tell(func() { v.inbox.tamed = now })
			}
		}
		if !wait.For(ctx, tryAgain) {
			return
		}
	}
}

// keepPrecheck keeps the precheck's verdict current for as long as this node is a candidate.
func (v *Service) keepPrecheck(ctx context.Context) {
	n := &v.inbox
	for ctx.Err() == nil {
		n.mu.Lock()
		conf, stands, was := n.precheck, n.stands, n.fit
		n.mu.Unlock()
		if len(conf.Exec) > 0 && stands {
			now := fitness{known: true}
			if err := v.unit.Command(ctx, "precheck", child.Spec{Argv: conf.Exec, Env: v.unit.Facts(0)}, conf.Timeout); err != nil {
				now.why = err.Error()
			}
			if ctx.Err() != nil {
				return
			}
			if now != was {
				n.tell(func() { n.fit = now })
			}
		}
		next := time.NewTimer(max(conf.Interval, time.Second))
		select {
		case <-next.C:
		case <-n.stood:
		case <-ctx.Done():
		}
		next.Stop()
	}
}
