package supervisor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"understudy/election"
	"understudy/supervisor/child"
)

// Watchdog is the device that resets this machine when a child outlives its lease.
type Watchdog struct {
	Device   string
	Required bool // without it, this node does not stand for election
}

// mode is how the config calls it.
func (w *Watchdog) mode() string {
	if w.Required {
		return "required"
	}
	return "automatic"
}

// showWatchdog tells the observer of the device, once the guardians stand, who feed it.
func (s *supervisor) showWatchdog() {
	w := s.cfg.Watchdog
	holder, ok := s.guard.(interface{ WatchdogArmed() bool })
	if w != nil && ok {
		s.cfg.Observer.Watchdog(w.Device, w.mode(), holder.WatchdogArmed)
	}
}

// tryAgain is how long a node that cannot arm its watchdog waits before it tries again.
const tryAgain = 2 * time.Second

var errNoWatchdog = errors.New("no watchdog can be armed here")

// dog is how the device is used in a session.
func (w *Watchdog) dog(session time.Duration) (child.Watchdog, error) {
	d := child.Watchdog{Path: w.Device, Timeout: election.Watchdog(session), After: election.AfterLease(session)}
	if d.Timeout <= 0 {
		return d, fmt.Errorf("the session timeout of %v, which ZooKeeper granted, is too short for a watchdog", session)
	}
	return d, nil
}

// arm has the machine reset unless the tree is proved dead soon after its lease's end. nothingYet: the
// child may be started.
func (v *service) arm(ctx context.Context, session time.Duration, tree Tree) event {
	if v.watchdog == nil {
		return nothingYet
	}
	err := func() error {
		dog, err := v.watchdog.dog(session)
		if err != nil {
			return err
		}
		return tree.Arm(ctx, dog)
	}()
	switch {
	case err == nil:
		return nothingYet
	case ctx.Err() != nil:
		return ending(ctx)
	case errors.Is(err, child.ErrLeaseEnded), errors.Is(err, child.ErrGuardiansLost):
		return leaseEnding
	case v.watchdog.Required:
		v.log.Error("the watchdog, which is required, cannot be armed: nothing is started", "service", v.name, "error", err)
		v.news.tell(func() { v.news.tamed, v.news.untamed = true, err.Error() })
		return unarmed
	}
	v.log.Warn("no watchdog: a child that cannot be killed outlives its lease", "service", v.name, "error", err)
	return nothingYet
}

// tame finds out whether a watchdog that is required can be armed, and goes on trying while it cannot.
func (v *service) tame(ctx context.Context, session func() time.Duration) {
	if v.watchdog == nil || !v.watchdog.Required {
		return
	}
	for {
		v.news.mu.Lock()
		known, was := v.news.tamed, v.news.untamed
		v.news.mu.Unlock()
		if !known || was != "" {
			why := ""
			if err := v.tryDog(ctx, session()); err != nil {
				why = err.Error()
			}
			if ctx.Err() != nil {
				return
			}
			if !known || why != was {
				v.news.tell(func() { v.news.tamed, v.news.untamed = true, why })
			}
		}
		if !pause(ctx, tryAgain) {
			return
		}
	}
}

func (v *service) tryDog(ctx context.Context, session time.Duration) error {
	dog, err := v.watchdog.dog(session)
	if err != nil {
		return err
	}
	taker, ok := v.guard.(interface {
		CheckWatchdog(ctx context.Context, w child.Watchdog) error
	})
	if !ok {
		return errNoWatchdog
	}
	return taker.CheckWatchdog(ctx, dog)
}
