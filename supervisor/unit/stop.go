package unit

import (
	"context"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"understudy/supervisor/child"
	"understudy/supervisor/config"
	"understudy/supervisor/wait"
)

// Cut ends the waiting of a stop for programs that it has asked to end, because the caller kills them: when either channel is closed.
type Cut struct {
	LockLost   <-chan struct{} // P1: another node may be counting its grace delay
	LeaseEnded <-chan struct{} // P3
}

func (c Cut) over() bool { return wait.Closed(c.LockLost) || wait.Closed(c.LeaseEnded) }

// Stop asks the programs to end, in reverse order. It waits until they do, or until the time for that is over, and undoes the oneshots
// between them. now is the present config: the settings of a stop may have changed. The caller kills and undoes the rest.
func (r *Run) Stop(ctx context.Context, now config.Service, cut Cut) {
	ctx = context.WithoutCancel(ctx)
	r.watch.findLastStrays(ctx)
	s := stopping{r, cut}
	for i, p := range slices.Backward(r.parts) {
		if !p.Oneshot {
			s.stop(part{current(now, p.Process), p.process})
		}
		if cut.over() {
			return
		}
		if p.Oneshot {
			if len(p.Undo) > 0 {
				s.undoNewest(ctx)
			}
			continue
		}
		if i > 0 { // the last program's end is the tree's
			bounded, cancel := context.WithTimeout(ctx, proofPatience)
			if err := p.process.Kill(bounded); err != nil {
				r.u.log.Warn("processes that the program left behind are not proved dead yet", r.named(p.Process, "error", err)...)
			}
			cancel()
		}
	}
}

// stopping is one call of Stop.
type stopping struct {
	*Run
	cut Cut
}

// undoNewest undoes the newest oneshot, in the tree.
func (s stopping) undoNewest(ctx context.Context) {
	s.u.undo(ctx, s.cut.over, func(d Debt, spec child.Spec) error { return s.u.inTree(ctx, s.cfg.Tree, "undo", spec, d.Timeout) })
}

// stop asks one program to end.
func (s stopping) stop(p part) {
	if wait.Closed(p.process.Done()) {
		return
	}
	pid := p.process.Pid()
	s.u.log.Info("stopping the child", s.named(p.Process, "pid", pid, "signal", unix.SignalName(syscall.Signal(p.StopSignal)), "timeout", p.StopTimeout)...)
	if err := p.process.Signal(syscall.Signal(p.StopSignal)); err != nil {
		s.u.log.Debug("cannot signal the child", "service", s.u.cfg.Service, "error", err)
		return
	}
	_ = p.process.Signal(unix.SIGCONT) // a stopped process does not act on signals
	patience := time.NewTimer(p.StopTimeout)
	defer patience.Stop()
	if !s.waits(patience.C, p.process.Done(), p) {
		return
	}
	s.u.log.Info("child ended", s.named(p.Process, "pid", pid, "status", Describe(ExitOf(p.process)))...)
	s.stopRest(patience.C, p)
}

// stopRest asks the processes that the first one left behind, such as a shell's command, to end in the rest of the time.
func (s stopping) stopRest(patience <-chan time.Time, p part) {
	told := false
	for nap := time.Millisecond; ; nap = min(2*nap, 50*time.Millisecond) {
		left := p.process.AskRest(syscall.Signal(p.StopSignal))
		if left == 0 {
			return
		}
		if !told && nap > 10*time.Millisecond {
			told = true
			s.u.log.Info("asking processes that the child left behind to end", s.named(p.Process, "processes", left, "signal", unix.SignalName(syscall.Signal(p.StopSignal)))...)
		}
		again := make(chan struct{})
		timer := time.AfterFunc(nap, func() { close(again) })
		goes := s.waits(patience, again, p)
		timer.Stop()
		if !goes {
			return
		}
	}
}

// waits waits for an event. If it gives up, it returns why: then the child has to be killed.
func (s stopping) waits(patience <-chan time.Time, something <-chan struct{}, p part) bool {
	var why string
	select {
	case <-something:
		return true
	case <-patience:
		why = "the child did not stop in time, killing it"
	case <-s.cut.LockLost:
		why = "the lock is lost, killing the child"
	case <-s.cut.LeaseEnded:
		why = "the lease has ended, killing the child"
	case <-s.u.cfg.Hurry:
		why = "asked again to stop, killing the child"
	}
	s.u.log.Warn(why, s.named(p.Process, "pid", p.process.Pid())...)
	return false
}
