package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"understudy/supervisor/config"
	"understudy/supervisor/service"
)

// errNoLock says that another node had the lock for as long as `run --wait` waits.
var errNoLock = errors.New("did not get the lock")

// lockWait is the wait for the lock that `run --wait` bounds; nil: it has no end.
type lockWait struct {
	*service.Patience
	limit time.Duration // 0: one attempt
	most  time.Duration // until ZooKeeper has to have answered to that
	ended chan struct{} // closed when it has run out
}

// waits makes it of the flags. carried: this process was upgraded, so that the command may have been active before.
func (f *commandFlags) waits(carried bool) *lockWait {
	if !f.set.Changed("wait") || carried && !f.once {
		return nil
	}
	w := &lockWait{limit: f.wait, most: f.wait, ended: make(chan struct{})}
	if f.wait == 0 {
		w.most = 2 * f.lease
	}
	w.Patience = service.NewPatience(f.wait == 0, func() { close(w.ended) })
	return w
}

// run returns when the wait has run out, or ctx ends.
func (w *lockWait) run(ctx context.Context) error {
	late := time.NewTimer(w.most)
	defer late.Stop()
	for {
		select {
		case <-late.C:
			w.Late()
		case <-w.ended:
			return nil
		case <-ctx.Done():
			return nil
		}
	}
}

// missed is errNoLock with what to ask.
func (w *lockWait) missed(service string) error {
	how := "within " + w.limit.String()
	if w.limit == 0 {
		how = "at the first try"
	}
	return fmt.Errorf("%w of %s %s: see `understudy status %[2]s`", errNoLock, service, how)
}

// together tells why flags of a command do not go with each other.
func (f *commandFlags) together() error {
	switch {
	case f.once && f.service.Restart.Policy == config.RestartAlways:
		return usage("--once ends when the command ends, so it does not go with --restart always: leave one of them out")
	case f.wait < 0:
		return usage("--wait: %v is less than zero", f.wait)
	}
	return nil
}
