package supervisor

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"understudy/supervisor/child"
	"understudy/supervisor/child/notify"
	"understudy/supervisor/child/probe"
)

// unit is a service's programs in one run: from the start of the first until something ends all of them.
type unit struct {
	v     *service
	conf  Service // as it was at the start
	tree  Tree
	token int64
	fail  context.CancelCauseFunc // ends the run
	over  chan struct{}           // closed when the run is over
	wg    sync.WaitGroup

	adopts *carriedRun // what a former image of this process has started; nil: nothing
	risen  bool        // all of it is ready, and the hook has run
	since  time.Time   // when that was so
	handed bool        // another image of this process goes on with it

	mu      sync.Mutex // guards what follows, while the unit starts
	parts   []part     // in the order of their start
	sockets []*notify.Socket
}

// part is a program that was started.
type part struct {
	Program
	process Process
}

// endedError says that a program has ended by itself.
type endedError struct {
	name   string
	status child.ExitStatus
}

func (e *endedError) Error() string { return e.name + " ended: " + describe(e.status) }

// startError says that a program cannot be started here.
type startError struct{ error }

func (e startError) Unwrap() error { return e.error }

// errHook says that on_active failed.
var errHook = errors.New("on_active failed")

// errChanged says that the config changed in a way that takes a new start.
var errChanged = errors.New("its config has changed")

// raise starts the programs in their order, each when the former is ready.
func (u *unit) raise(ctx context.Context) error {
	if u.adopts != nil {
		u.mu.Lock()
		u.parts = u.adopts.parts
		u.mu.Unlock()
		u.v.process = u.parts[0].process
		for _, s := range u.adopts.Sockets {
			u.sockets = append(u.sockets, s.socket)
			u.hear(ctx, s.socket)
		}
		for _, p := range u.parts {
			u.mind(p)
		}
		return nil
	}
	for _, prog := range u.conf.Programs {
		if err := u.start(ctx, prog); err != nil {
			return err
		}
	}
	hook := u.conf.Hooks.OnActive
	if len(hook.Command) == 0 {
		return nil
	}
	spec := child.Spec{Argv: hook.Command, Env: u.v.facts(u.token)}
	if err := u.v.inside(ctx, u.tree, "on_active", spec, hook.Timeout); err != nil {
		return fmt.Errorf("%w: %w", errHook, err)
	}
	return nil
}

// start starts one program, and waits until it is ready, or, if it is to run only once, until it has done that.
func (u *unit) start(ctx context.Context, prog Program) error {
	spec, socket, err := u.v.spec(ctx, u.tree, prog, u.token)
	if err != nil {
		return startError{err}
	}
	if socket != nil {
		u.sockets = append(u.sockets, socket)
		u.hear(ctx, socket)
	}
	if prog.Oneshot && len(prog.Undo) > 0 {
		u.v.owe(prog) // before it can have done anything
	}
	if u.v.until > 0 && u.v.machine.Now() < u.v.until { // P1: whatever the role says
		return startError{errPromised}
	}
	release, err := u.mark(&spec)
	if err != nil { // then it speaks through our stream
		u.v.log.Debug("the program has no stream of its own to the journal", u.named(prog, "error", err)...)
	}
	p, err := u.tree.Start(ctx, spec)
	release()
	if err != nil {
		return startError{err}
	}
	u.mu.Lock()
	u.parts = append(u.parts, part{prog, p})
	u.mu.Unlock()
	if len(u.parts) == 1 {
		u.v.process = p
	}
	u.v.log.Info("child started", u.named(prog, "pid", p.Pid(), "token", u.token)...)
	if prog.Oneshot {
		return u.await(ctx, prog, p)
	}
	u.mind(part{prog, p})
	return u.ready(ctx, prog, p, socket)
}

// hear takes in what a program says, until the run is over.
func (u *unit) hear(ctx context.Context, socket *notify.Socket) {
	ctx, deaf := context.WithCancel(context.WithoutCancel(ctx))
	u.wg.Go(func() {
		<-u.over
		deaf()
	})
	u.wg.Go(func() {
		if err := socket.Run(ctx); err != nil {
			u.v.log.Debug("cannot hear the child", "service", u.v.name, "error", err)
		}
	})
}

// mind ends the run when a program ends by itself that is not to.
func (u *unit) mind(p part) {
	if p.Oneshot {
		return
	}
	u.wg.Go(func() {
		select {
		case <-p.process.Done():
			u.fail(&endedError{p.Name, exitOf(p.process)})
		case <-u.over:
		}
	})
}

// await waits for a program that is to run to its end.
func (u *unit) await(ctx context.Context, prog Program, p Process) error {
	if prog.Ready.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, prog.Ready.Timeout, fmt.Errorf("%s has not ended within %v", prog.Name, prog.Ready.Timeout))
		defer cancel()
	}
	select {
	case <-p.Done():
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if status := exitOf(p); status.Code != 0 {
		return &endedError{prog.Name, status}
	}
	return nil
}

// ready waits until a program says, or shows, that it has started.
func (u *unit) ready(ctx context.Context, prog Program, p Process, socket *notify.Socket) error {
	r := prog.Ready
	checker := u.checker(prog, r.TCP, r.HTTP, r.Exec)
	switch {
	case socket != nil:
		bounded, cancel := context.WithTimeoutCause(ctx, r.Timeout, fmt.Errorf("%s has not said READY=1 within %v", prog.Name, r.Timeout))
		defer cancel()
		select {
		case <-socket.Ready():
		case <-bounded.Done():
			return context.Cause(bounded)
		}
	case checker != nil:
		if err := probe.WaitReady(ctx, r.Timeout, checker); err != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return fmt.Errorf("%s is not ready within %v: %w", prog.Name, r.Timeout, err)
		}
	case r.After > 0:
		if !pause(ctx, r.After) {
			return context.Cause(ctx)
		}
	default:
		return nil
	}
	u.v.log.Info("child ready", u.named(prog, "pid", p.Pid())...)
	return nil
}

// lower asks the programs to end, in reverse order, for as long as that can be waited for. What is left is the caller's to
// kill, and to undo.
func (u *unit) lower(ctx context.Context, t turn, why event) {
	ctx = context.WithoutCancel(ctx)
	if why == lockLost {
		return // another node may be counting its grace delay
	}
	u.findStraysBeside(ctx)
	for i := len(u.parts) - 1; i >= 0; i-- {
		p := u.parts[i]
		if !p.Oneshot {
			u.stop(t, p)
		}
		if t.over() {
			return
		}
		if p.Oneshot {
			if len(p.Undo) > 0 {
				u.v.undoNewest(ctx, t, u.tree)
			}
			continue
		}
		if i > 0 { // the last one's is the tree's end
			bounded, cancel := context.WithTimeout(ctx, proofPatience)
			if err := p.process.Kill(bounded); err != nil {
				u.v.log.Warn("what it left behind is not proved dead yet", u.named(p.Program, "error", err)...)
			}
			cancel()
		}
	}
}

// stop asks one program to end.
func (u *unit) stop(t turn, p part) {
	v := u.v
	select {
	case <-p.process.Done():
		return
	default:
	}
	prog := v.current(p.Program)
	v.log.Info("stopping the child", u.named(prog, "pid", p.process.Pid(), "signal", unix.SignalName(prog.StopSignal), "timeout", prog.StopTimeout)...)
	if err := p.process.Signal(prog.StopSignal); err != nil {
		v.log.Debug("cannot signal the child", "service", v.name, "error", err)
		return
	}
	_ = p.process.Signal(unix.SIGCONT) // one that is stopped hears nothing
	patience := time.NewTimer(prog.StopTimeout)
	defer patience.Stop()
	if !u.waits(t, patience.C, p.process.Done(), prog, p) {
		return
	}
	v.log.Info("child ended", u.named(prog, "pid", p.process.Pid(), "status", describe(exitOf(p.process)))...)
	u.stopRest(t, patience.C, prog, p)
}

// stopRest asks what the first process left behind, a shell's command say, to end in what is left of the time.
func (u *unit) stopRest(t turn, patience <-chan time.Time, prog Program, p part) {
	told := false
	for nap := time.Millisecond; ; nap = min(2*nap, 50*time.Millisecond) {
		left := p.process.AskRest(prog.StopSignal)
		if left == 0 {
			return
		}
		if !told && nap > 10*time.Millisecond {
			told = true
			u.v.log.Info("asking what the child left behind to end", u.named(prog, "processes", left, "signal", unix.SignalName(prog.StopSignal))...)
		}
		again := make(chan struct{})
		timer := time.AfterFunc(nap, func() { close(again) })
		goes := u.waits(t, patience, again, prog, p)
		timer.Stop()
		if !goes {
			return
		}
	}
}

// waits waits for something, and tells why it does so no longer: the child is to be killed.
func (u *unit) waits(t turn, patience <-chan time.Time, something <-chan struct{}, prog Program, p part) bool {
	var why string
	select {
	case <-something:
		return true
	case <-patience:
		why = "the child did not stop in time, killing it"
	case <-t.lost: // P1: another node may be counting its grace delay
		why = "the lock is lost, killing the child"
	case <-t.sess.Ended(): // P3
		why = "the lease has ended, killing the child"
	case <-u.v.hurry:
		why = "asked again to stop, killing the child"
	}
	u.v.log.Warn(why, u.named(prog, "pid", p.process.Pid())...)
	return false
}

// named puts the service, and the program where there are several, before other facts.
func (u *unit) named(prog Program, facts ...any) []any {
	if len(u.conf.Programs) > 1 {
		return append([]any{"service", u.v.name, "process", prog.Name}, facts...)
	}
	return append([]any{"service", u.v.name}, facts...)
}

// current is a program as the config has it now: how it is stopped may change while it runs.
func (v *service) current(p Program) Program {
	for _, now := range v.Programs {
		if now.Name == p.Name {
			p.StopSignal, p.StopTimeout = now.StopSignal, now.StopTimeout
		}
	}
	return p
}

// close ends what listens to the programs.
func (u *unit) close() {
	close(u.over)
	for _, s := range u.sockets {
		if !u.handed {
			_ = s.Close()
		}
	}
	u.wg.Wait()
}

// over tells that the lease has ended, or that the lock is lost: what is left is killed, not asked.
func (t turn) over() bool {
	select {
	case <-t.sess.Ended():
		return true
	case <-t.lost:
		return true
	default:
		return false
	}
}
