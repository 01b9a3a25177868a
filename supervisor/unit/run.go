package unit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"understudy/supervisor/child"
	"understudy/supervisor/child/notify"
	"understudy/supervisor/config"
)

// RunConfig is what one run is begun with.
type RunConfig struct {
	Tree  Tree
	Conf  config.Service
	Token int64 // which the programs, and what is to be undone, are told
	// MayStart is asked before each start; an error says why a program must not be started now.
	MayStart func() error
	Adopt    *Carried // what a former image of this process has started; nil: nothing
	// Health is told what the newest health check says, Astray which programs have left their cgroups: "" is well, as at the beginning.
	// Each is told changes only, by one goroutine at a time.
	Health, Astray func(said string)
}

// Run is a unit's programs in one run: from the start of the first until something ends all of them.
//
// One goroutine, the caller's, ends it: once Done is closed it calls Wait, then Stop or HandOver as it likes, and at last Close.
type Run struct {
	u        *Unit
	cfg      RunConfig
	end      context.CancelCauseFunc
	done     <-chan struct{}
	why      func() error
	ready    chan struct{}
	watchers sync.WaitGroup // start, watch and look after the programs until the run has ended
	over     chan struct{}  // closed when nobody asks the programs for anything any more
	hearers  sync.WaitGroup // until then
	handed   bool           // another image of this process goes on with it
	watch    watch

	mu      sync.Mutex // guards what follows
	parts   []part     // in the order of their start
	sockets []*notify.Socket
}

// part is a program that was started.
type part struct {
	config.Process
	process Process
}

// Ended says that a program has ended by itself.
type Ended struct {
	Name   string
	Status child.ExitStatus
}

func (e *Ended) Error() string { return e.Name + " ended: " + Describe(e.Status) }

// StartError says that a program cannot be started here.
type StartError struct{ Err error }

func (e *StartError) Error() string { return e.Err.Error() }

func (e *StartError) Unwrap() error { return e.Err }

var (
	// ErrHook says that on_active failed.
	ErrHook = errors.New("on_active failed")
	// ErrChanged says that the config changed in a way that takes a new start.
	ErrChanged = errors.New("its config has changed")
	// ErrUnhealthy says that the health check failed too often.
	ErrUnhealthy = errors.New("unhealthy")
)

// Start begins a run, or goes on with one that a former image of this process has begun. It waits for undos of a former run. The run ends
// when ctx does, or by itself.
func (u *Unit) Start(ctx context.Context, cfg RunConfig) *Run {
	running, end := context.WithCancelCause(ctx)
	r := &Run{
		u: u, cfg: cfg, end: end, done: running.Done(), why: func() error { return context.Cause(running) },
		ready: make(chan struct{}), over: make(chan struct{}),
	}
	r.watch = watch{r: r, changed: make(chan struct{}, 1), health: cfg.Conf.Health}
	if cfg.Adopt == nil {
		u.undoing.Wait()
		if err := u.logs.retain(cfg.Conf.Processes); err != nil {
			u.log.Warn("a log file cannot be closed", "service", u.cfg.Service, "error", err)
		}
	} else {
		r.adopt(ctx)
	}
	r.watchers.Go(func() { r.rise(running) })
	r.watchers.Go(func() { r.watch.findStrays(running) })
	return r
}

// adopt takes over what runs already.
func (r *Run) adopt(ctx context.Context) {
	former := r.cfg.Adopt
	r.parts = former.parts
	for _, s := range former.Sockets {
		r.hear(ctx, s.socket)
	}
	for _, p := range former.Pipes {
		if err := r.u.logs.resume(ctx, &r.u.reach, p, r.u.log); err != nil {
			r.end(&StartError{fmt.Errorf("log file: %w", err)})
		}
	}
	now := r.cfg.Conf
	if r.cfg.Conf.Processes = former.Programs; r.Outdated(now) {
		r.end(ErrChanged)
	}
}

// Ready is closed when all programs are ready and on_active has ended.
func (r *Run) Ready() <-chan struct{} { return r.ready }

// Done is closed when something has ended the run. The programs may be alive.
func (r *Run) Done() <-chan struct{} { return r.done }

// End ends the run; the first reason counts.
func (r *Run) End(why error) { r.end(why) }

// Wait waits until the run has ended, and nothing is started or checked any more, and tells why: the cause of Start's context, a
// reason given to End, an *Ended, a *StartError, ErrHook, ErrUnhealthy, ErrChanged, or what a program failed to do in time.
func (r *Run) Wait() error {
	<-r.done
	r.watchers.Wait()
	return r.why()
}

// First is the program that was started first, nil if none was.
func (r *Run) First() Process {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.parts) == 0 {
		return nil
	}
	return r.parts[0].process
}

// Outdated tells whether a changed config takes a new start.
func (r *Run) Outdated(now config.Service) bool { return outdated(r.cfg.Conf, now) }

// Reconfigure puts those parts of a changed config in force that do not take a new start.
func (r *Run) Reconfigure(now config.Service) { r.watch.reconfigure(now.Health) }

// Reload sends each program a signal.
func (r *Run) Reload(sig unix.Signal) {
	for _, p := range r.started() {
		if p.Oneshot {
			continue
		}
		r.u.log.Info("reloading the child", r.named(p.Process, "pid", p.process.Pid(), "signal", unix.SignalName(sig))...)
		if err := p.process.Signal(sig); err != nil {
			r.u.log.Error("cannot signal the child", r.named(p.Process, "error", err)...)
		}
	}
}

// Close ends the goroutines that listen to the programs, after the run.
func (r *Run) Close() {
	r.end(nil)
	r.watchers.Wait()
	close(r.over)
	for _, s := range r.sockets {
		if !r.handed {
			_ = s.Close()
		}
	}
	r.hearers.Wait()
}

// started are the programs that were started yet.
func (r *Run) started() []part {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.parts)
}

// named puts the service, and the program if there are several, before other facts of a log line.
func (r *Run) named(prog config.Process, facts ...any) []any {
	if len(r.cfg.Conf.Processes) > 1 {
		return append([]any{"service", r.u.cfg.Service, "process", prog.Name}, facts...)
	}
	return append([]any{"service", r.u.cfg.Service}, facts...)
}
