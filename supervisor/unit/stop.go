package unit

import (
	"context"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"understudy/supervisor/child"
)

// Cut says when programs that were asked to stop are waited for no longer: the caller kills them. Both are closed then.
type Cut struct {
	LockLost   <-chan struct{} // P1: another node may be counting its grace delay
	LeaseEnded <-chan struct{} // P3
}

func (c Cut) over() bool { return closed(c.LockLost) || closed(c.LeaseEnded) }

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// Stop asks the programs to end, in reverse order, for as long as that can be waited for, and undoes what oneshots between them did.
// now is the config as it is now: how a program is stopped may have changed. What is left is the caller's to kill, and to undo.
func (r *Run) Stop(ctx context.Context, now Conf, cut Cut) {
	ctx = context.WithoutCancel(ctx)
	r.findStraysBeside(ctx)
	for i, p := range slices.Backward(r.parts) {
		if !p.Oneshot {
			r.stop(cut, part{now.current(p.Program), p.process})
		}
		if cut.over() {
			return
		}
		if p.Oneshot {
			if len(p.Undo) > 0 {
				r.undoNewest(ctx, cut)
			}
			continue
		}
		if i > 0 { // the last one's is the tree's end
			bounded, cancel := context.WithTimeout(ctx, proofPatience)
			if err := p.process.Kill(bounded); err != nil {
				r.u.log.Warn("what it left behind is not proved dead yet", r.named(p.Program, "error", err)...)
			}
			cancel()
		}
	}
}

// undoNewest undoes what was done last, in the tree.
func (r *Run) undoNewest(ctx context.Context, cut Cut) {
	r.u.undo(ctx, cut.over, func(d Debt, spec child.Spec) error { return r.u.inTree(ctx, r.cfg.Tree, "undo", spec, d.Timeout) })
}

// stop asks one program to end.
func (r *Run) stop(cut Cut, p part) {
	if closed(p.process.Done()) {
		return
	}
	pid := p.process.Pid()
	r.u.log.Info("stopping the child", r.named(p.Program, "pid", pid, "signal", unix.SignalName(p.StopSignal), "timeout", p.StopTimeout)...)
	if err := p.process.Signal(p.StopSignal); err != nil {
		r.u.log.Debug("cannot signal the child", "service", r.u.cfg.Service, "error", err)
		return
	}
	_ = p.process.Signal(unix.SIGCONT) // one that is stopped hears nothing
	patience := time.NewTimer(p.StopTimeout)
	defer patience.Stop()
	if !r.waits(cut, patience.C, p.process.Done(), p) {
		return
	}
	r.u.log.Info("child ended", r.named(p.Program, "pid", pid, "status", Describe(ExitOf(p.process)))...)
	r.stopRest(cut, patience.C, p)
}

// stopRest asks what the first process left behind, a shell's command say, to end in what is left of the time.
func (r *Run) stopRest(cut Cut, patience <-chan time.Time, p part) {
	told := false
	for nap := time.Millisecond; ; nap = min(2*nap, 50*time.Millisecond) {
		left := p.process.AskRest(p.StopSignal)
		if left == 0 {
			return
		}
		if !told && nap > 10*time.Millisecond {
			told = true
			r.u.log.Info("asking what the child left behind to end", r.named(p.Program, "processes", left, "signal", unix.SignalName(p.StopSignal))...)
		}
		again := make(chan struct{})
		timer := time.AfterFunc(nap, func() { close(again) })
		goes := r.waits(cut, patience, again, p)
		timer.Stop()
		if !goes {
			return
		}
	}
}

// waits waits for something, and tells why it does so no longer: the child is to be killed.
func (r *Run) waits(cut Cut, patience <-chan time.Time, something <-chan struct{}, p part) bool {
	var why string
	select {
	case <-something:
		return true
	case <-patience:
		why = "the child did not stop in time, killing it"
	case <-cut.LockLost:
		why = "the lock is lost, killing the child"
	case <-cut.LeaseEnded:
		why = "the lease has ended, killing the child"
	case <-r.u.cfg.Hurry:
		why = "asked again to stop, killing the child"
	}
	r.u.log.Warn(why, r.named(p.Program, "pid", p.process.Pid())...)
	return false
}
