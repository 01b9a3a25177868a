package unit

import (
	"context"
	"errors"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"understudy/supervisor/child"
	"understudy/supervisor/config"
	"understudy/supervisor/guard"
	"understudy/supervisor/host"
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
	s := stopping{Run: r, cut: cut}
	s.backTo(ctx, now, 0)
}

// backTo stops all but the first programs, so many. It reports false if it was cut.
func (s *stopping) backTo(ctx context.Context, now config.Service, first int) bool {
	for i, p := range slices.Backward(s.parts) {
		if i < first {
			break
		}
		if !p.Oneshot {
			s.stop(part{current(now, p.Process), p.process, p.socket})
		}
		if s.cut.over() {
			return false
		}
		if p.Oneshot {
			if len(p.Undo) > 0 {
				// P2: what it has begun may have its effect later, or what it has left; and what nobody has killed may use it
				astray := s.watch.lost.Load()
				s.unproved = s.unproved || astray
				s.keeps = s.keeps || astray || !succeeded(p.process) && !s.kill(ctx, p)
				if s.idle.IsZero() && !s.unproved && !slices.ContainsFunc(s.parts[:i], func(p part) bool { return !p.Oneshot }) {
					s.idle = time.Now()
				}
				s.undoNewest(ctx, p.Name)
			}
			continue
		}
		if i > 0 { // the last program's end is the tree's
			s.unproved = !s.kill(ctx, p) || s.unproved
		}
	}
	return true
}

// succeeded reports whether a oneshot has ended with success.
func succeeded(p host.Process) bool { return wait.Closed(p.Done()) && ExitOf(p).Code == 0 }

// errCut says that an undo was interrupted by the end of its tree.
var errCut = errors.New("its tree was killed")

// wrapUp is more than a command or program takes beyond its own timeout: to be forked, killed and proved dead, and to be noted.
const wrapUp = 10 * time.Second

// StopsWithin is the longest that Stop may take.
func (r *Run) StopsWithin(now config.Service) (d time.Duration) {
	for _, p := range r.started() {
		d += max(p.StopTimeout, current(now, p.Process).StopTimeout) + 2*p.UndoTimeout + 2*wrapUp // it may be asked whether it is undone
	}
	return d
}

// stopping is one call of Stop.
type stopping struct {
	*Run
	cut      Cut
	unproved bool // a program, or what it left, may be alive
	keeps    bool // an undo has failed, or what it undoes may go on: those that are left wait for the tree's death
}

// kill kills a program with all that it left, and reports whether that is proved dead.
func (s *stopping) kill(ctx context.Context, p part) bool {
	bounded, cancel := context.WithTimeout(ctx, proofPatience)
	defer cancel()
	err := p.process.Kill(bounded)
	if err != nil {
		s.u.log.Warn("processes that the program left behind are not proved dead yet", s.named(p.Process, "error", err)...)
	}
	return err == nil
}

// undoNewest undoes the newest oneshot, in the tree. One that has done nothing owes nothing.
func (s *stopping) undoNewest(ctx context.Context, name string) {
	d, owes := s.u.undos.newest()
	if !owes || d.Name != name || s.keeps {
		return
	}
	s.keeps = s.u.undo(ctx, d, 0, func(ctx context.Context, what string, spec child.Spec) error {
		err := s.u.inTree(ctx, s.cfg.Tree, what, spec, d.Timeout)
		// The tree's end interrupted it. Guardians may know of that before this process does, as when it has slept.
		if err != nil && (s.cut.over() || errors.Is(err, guard.ErrLeaseEnded)) {
			return errCut
		}
		return err
	}) != nil
}

// stop asks one program to end.
func (s *stopping) stop(p part) {
	if wait.Closed(p.process.Done()) {
		return
	}
	pid := p.process.Pid()
	s.u.log.Info("stopping the program",
		s.named(p.Process, "pid", pid, "signal", unix.SignalName(syscall.Signal(p.StopSignal)), "timeout", p.StopTimeout)...)
	if err := p.process.Signal(syscall.Signal(p.StopSignal)); err != nil {
		s.u.log.Debug("cannot signal the program", "service", s.u.cfg.Service, "error", err)
		return
	}
	_ = p.process.Signal(unix.SIGCONT) // a stopped process does not act on signals
	patience := time.NewTimer(p.StopTimeout)
	defer patience.Stop()
	if !s.waits(patience.C, p.process.Done(), p) {
		return
	}
	s.left = time.Now()
	s.u.log.Info("program ended", s.named(p.Process, "pid", pid, "status", Describe(ExitOf(p.process)))...)
	s.stopLeftovers(patience.C, p)
}

// stopLeftovers asks the processes that the first one left behind, such as a shell's command, to end in the rest of the time.
func (s *stopping) stopLeftovers(patience <-chan time.Time, p part) {
	told := false
	for nap := time.Millisecond; ; nap = min(2*nap, 50*time.Millisecond) {
		left := p.process.AskLeftovers(syscall.Signal(p.StopSignal))
		if left == 0 {
			return
		}
		if !told && nap > 10*time.Millisecond {
			told = true
			s.u.log.Info("asking processes that the program left behind to end",
				s.named(p.Process, "processes", left, "signal", unix.SignalName(syscall.Signal(p.StopSignal)))...)
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
func (s *stopping) waits(patience <-chan time.Time, something <-chan struct{}, p part) bool {
	var why string
	select {
	case <-something:
		return true
	case <-patience:
		why = "the program did not stop in time, killing it"
	case <-s.cut.LockLost:
		why = "the lock is lost, killing the program"
	case <-s.cut.LeaseEnded:
		why = "the lease has ended, killing the program"
	case <-s.u.cfg.Hurry:
		why = "asked again to stop, killing the program"
	}
	s.u.log.Warn(why, s.named(p.Process, "pid", p.process.Pid())...)
	return false
}
