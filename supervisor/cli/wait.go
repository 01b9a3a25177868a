package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"understudy/supervisor/config"
	"understudy/supervisor/control"
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

// missed is errNoLock with who has the lock.
func (f *runFlags) missed(ctx context.Context, w *lockWait, node, service string) error {
	how := "within " + w.limit.String()
	if w.limit == 0 {
		how = "at the first try"
	}
	return fmt.Errorf("%w of %s %s: %s", errNoLock, service, how, f.holder(ctx, node, service))
}

// holder tells who has the lock of a service, or why nobody has.
func (f *runFlags) holder(ctx context.Context, node, service string) string {
	ctx, cancel := context.WithTimeout(ctx, time.Second) // for both
	defer cancel()
	s := f.cluster.quickStatus(ctx, time.Second, service)
	if len(s.Services) == 0 { // it is unknown, or no server answers
		s = f.cluster.quickStatus(ctx, time.Second)
		s.Services = []control.ServiceStatus{{Service: service}}
	}
	drained := slices.IndexFunc(s.Drained, func(d control.DrainedNode) bool { return d.Node == node })
	switch v := s.Services[0]; {
	case s.Where == "":
		return "no ZooKeeper server of " + f.cluster.ZK + " answers"
	case v.Lock != node && v.Lock != "", !s.Connected(node):
	default: // this command's own session has ended
		return "the node name " + node + " is in use by another supervisor, or its previous session has not ended"
	}
	switch v := s.Services[0]; {
	case v.Active != "" && v.Since != nil:
		return fmt.Sprintf("it is active on %s, since %s (%s ago)",
			v.Active, v.Since.Local().Format(time.DateTime), since(v.Since, time.Now()))
	case v.Active != "":
		return "it is active on " + v.Active
	case v.Lock != "":
		return v.Lock + " is about to be active"
	case drained >= 0:
		return fmt.Sprintf("%s is %s", node, s.Drained[drained].Words)
	case v.Paused:
		return "it is " + v.Order
	case v.Fencing != nil && v.Fencing.Node != "":
		return fmt.Sprintf("the program may still run on %s (see `understudy status %s`)", v.Fencing.Node, service)
	}
	return "no node has it now, but this one could not take it: its log has the reason"
}

// together tells why flags of a command do not go with each other.
func (f *commandFlags) together() error {
	switch {
	case f.once && f.service.Restart.Policy == config.RestartAlways:
		return usage("--once ends when the command ends, so it does not go with --restart always: leave one of them out")
	case f.wait < 0:
		return usage("--wait: %v is less than zero", f.wait)
	case f.hold < 0:
		return usage("--hold: %v is less than zero", f.hold)
	case f.hold > 0 && !f.once:
		return usage("--hold goes with --once: it keeps the lock after the end of a program that runs once")
	}
	return nil
}
