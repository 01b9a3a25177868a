package unit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"understudy/supervisor/child"
	"understudy/supervisor/child/notify"
	"understudy/supervisor/child/wire"
	"understudy/supervisor/config"
	"understudy/supervisor/host"
)

// RunConfig configures one run.
type RunConfig struct {
	Tree  host.Tree
	Conf  config.Service
	Token int64 // for the programs and the undo commands
	// MayStart is called before each start; an error says why the run must not start a program now.
	MayStart func() error
	Fault    error    // why it cannot start any; nil: nothing
	Stdin    *os.File // of the programs; nil: /dev/null
	Env      []string // of the programs, besides
	// Promote makes the program, which is ready, a primary, and Attend looks whether it stays one until ctx ends. nil: it is none.
	Promote func(ctx context.Context, first host.Process) error
	Attend  func(ctx context.Context) error
	Adopt   *CarriedRun // the programs that a previous image of this process has started; nil: none
	// Health gets the newest health check's fault, Astray the processes that are in other cgroups: "" is none, as at the beginning.
	// Each gets changes only, from one goroutine at a time.
	Health, Astray func(said string)
	Claimed        func() // another machine claims an address of the service; nil: nobody asks
	// Lost gets why an address of the service has no link, again and again, and "" when it has one again; nil: nobody asks.
	Lost func(why string)
}

// Run is a unit's programs from the start of the first until all of them end.
//
// One goroutine, the caller's, ends it: once Done is closed it calls Wait, then Stop or HandOver as it likes, and at last Close.
type Run struct {
	u          *Unit
	cfg        RunConfig
	end        context.CancelCauseFunc
	done       <-chan struct{}
	why        func() error
	ready      chan struct{}
	hooked     time.Duration  // how long on_active ran; written before ready is closed
	watchers   sync.WaitGroup // start and check the programs until the run has ended
	over       chan struct{}  // closed when nobody listens to the programs any more
	hearers    sync.WaitGroup // end with over
	handed     bool           // another image of this process continues it
	began      time.Duration  // on the boot clock; 0: in a previous image
	watch      watch
	follower   counts    // of a copy alone: what it was promoted with
	undosNoted bool      // the guardians know how to undo what the programs do
	left       time.Time // Stop saw the newest program end then; zero: it saw none
	idle       time.Time // Stop had proved all programs dead then, before it undid the first effects; zero: it had not

	mu      sync.Mutex // guards the fields below
	parts   []part     // in the order of their start
	sockets []*notify.Socket
}

type counts struct{ Parts, Sockets int }

// part is a started program.
type part struct {
	config.Process
	process host.Process
	socket  *notify.Socket // nil: it has none
}

// Ended says that a program has ended by itself.
type Ended struct {
	Name   string
	Status child.ExitStatus
	Why    string // as it has said; "": it has not
}

func (e *Ended) Error() string {
	if e.Why != "" {
		return called(e.Name) + ": " + e.Why
	}
	return called(e.Name) + " ended: " + Describe(e.Status)
}

// Unfit says that this host cannot run the service now, and another one may.
type Unfit struct{ Err error }

func (e *Unfit) Error() string { return e.Err.Error() }

func (e *Unfit) Unwrap() error { return e.Err }

// called is how messages call a process: the only one of a service has no name that its operator knows.
func called(name string) string {
	if name == config.MainProcess {
		return "the program"
	}
	return name
}

// StartError says that a program cannot be started here.
type StartError struct{ Err error }

func (e *StartError) Error() string { return e.Err.Error() }

func (e *StartError) Unwrap() error { return e.Err }

var (
	// ErrHook says that on_active failed.
	ErrHook = errors.New("on_active failed")
	// ErrPromote says that the program did not become the primary.
	ErrPromote = errors.New("promote failed")
	// ErrChanged says that the config changed in a way that requires a restart.
	ErrChanged = errors.New("its config has changed")
	// ErrUnhealthy says that the health check failed too often.
	ErrUnhealthy = errors.New("unhealthy")
)

// Start begins a run, or continues one that a previous image of this process has begun. The run ends when ctx
// does, or by itself.
func (u *Unit) Start(ctx context.Context, cfg RunConfig) *Run {
	running, end := context.WithCancelCause(ctx)
	r := &Run{
		u: u, cfg: cfg, end: end, done: running.Done(), why: func() error { return context.Cause(running) },
		ready: make(chan struct{}), over: make(chan struct{}),
	}
	if cfg.Adopt == nil {
		r.began = wire.Now()
	}
	r.watch = watch{r: r, changed: make(chan struct{}, 1), health: cfg.Conf.Health}
	if cfg.Adopt == nil {
		if err := u.logs.retain(cfg.Conf.Processes); err != nil {
			u.log.Warn("a log file cannot be closed", "service", u.cfg.Service, "error", err)
		}
	} else {
		r.adopt(ctx)
	}
	r.watchers.Go(func() { r.rise(running) })
	looking, enough := context.WithCancel(context.WithoutCancel(ctx))
	r.hearers.Go(func() { r.watch.findStrays(looking) })
	r.hearers.Go(func() { <-r.over; enough() })
	return r
}

// adopt takes over running programs.
func (r *Run) adopt(ctx context.Context) {
	previous := r.cfg.Adopt
	r.parts, r.follower = previous.parts, previous.Follower
	left := previous.Sockets
	for i := range r.parts { // they are in the order of the programs that have one
		if r.parts[i].Ready.Notify && len(left) > 0 {
			r.parts[i].socket, left = left[0].socket, left[1:]
		}
	}
	for _, s := range previous.Sockets {
		r.hear(ctx, s.socket)
	}
	for _, p := range previous.Pipes {
		if err := r.u.logs.resume(ctx, &r.u.reach, p, r.u.log); err != nil {
			r.end(&StartError{fmt.Errorf("log file: %w", err)})
		}
	}
	now := r.cfg.Conf
	r.cfg.Conf.Processes = previous.Programs
	if has := len(previous.Programs); r.cfg.Promote != nil && has < len(now.Processes) { // the others are started once it is promoted
		r.cfg.Conf.Processes = slices.Concat(previous.Programs, now.Processes[has:])
	}
	if r.Outdated(now) {
		r.end(ErrChanged)
	}
}

// Ready is closed when all programs are ready and on_active has ended.
func (r *Run) Ready() <-chan struct{} { return r.ready }

// Hooked is how long on_active ran before the run was ready; 0: it did not. Only for a run that is ready.
func (r *Run) Hooked() time.Duration { return r.hooked }

// Done is closed when the run has ended. The programs may be alive.
func (r *Run) Done() <-chan struct{} { return r.done }

// End ends the run; the first reason counts.
func (r *Run) End(why error) { r.end(why) }

// Wait waits until the run has ended, and neither starts nor checks go on. It returns why: the cause of Start's context, a reason
// given to End, an *Ended, a *StartError, ErrHook, ErrUnhealthy, ErrChanged, or an error for a program that was too slow.
func (r *Run) Wait() error {
	<-r.done
	r.watchers.Wait()
	return r.why()
}

// Ended is when Stop saw the newest program end, and when it had proved that all are dead; zero: it did not.
func (r *Run) Ended() (left, idle time.Time) { return r.left, r.idle }

// Began reports whether any program was started.
func (r *Run) Began() bool { return len(r.started()) > 0 }

// First is the first program that was started, or nil.
func (r *Run) First() host.Process {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.parts) == 0 {
		return nil
	}
	return r.parts[0].process
}

// Outdated reports whether a changed config requires a restart.
func (r *Run) Outdated(now config.Service) bool { return needsRestart(r.cfg.Conf, now) }

// Reconfigure puts the parts of a changed config in force that do not require a restart.
func (r *Run) Reconfigure(now config.Service) { r.watch.reconfigure(now.Health) }

// reloadCheckLimit is shorter than the command that orders a reload waits.
const reloadCheckLimit = 30 * time.Second

// CheckReload runs a command as the program's user until ctx ends, and sends why the programs should not reload; nil: they may.
func (r *Run) CheckReload(ctx context.Context, command config.Command) <-chan error {
	result := make(chan error, 1)
	checker := r.checker(r.cfg.Conf.Checked(), "", "", command)
	if checker == nil {
		result <- nil
		return result
	}
	r.watchers.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, reloadCheckLimit)
		defer cancel()
		result <- checker.Check(ctx)
	})
	return result
}

// Reload sends each program a signal.
func (r *Run) Reload(sig unix.Signal) {
	for _, p := range r.started() {
		if p.Oneshot {
			continue
		}
		r.u.log.Info("reloading the program", r.named(p.Process, "pid", p.process.Pid(), "signal", unix.SignalName(sig))...)
		if err := p.process.Signal(sig); err != nil {
			r.u.log.Error("cannot signal the program", r.named(p.Process, "error", err)...)
		}
	}
}

// Announce has the neighbours told again which host has the service's addresses.
func (r *Run) Announce() {
	for _, p := range r.started() {
		if !p.Keeps {
			continue
		}
		if err := p.process.Signal(config.AnnounceSignal); err != nil {
			r.u.log.Debug("the address is announced later", r.named(p.Process, "error", err)...)
		}
	}
}

// hearersEnd bounds the wait for those who listen to programs. An upgrade waits for it, and for the logs, and not for longer than 2 s.
const hearersEnd = time.Second / 2

// Close ends the goroutines that listen to the programs, after the run. It leaves behind those that a program keeps in the kernel, where a
// descriptor that it has sent may take hours to close (SO_LINGER), whether that is read or only in the queue.
func (r *Run) Close() {
	r.end(nil)
	r.watchers.Wait()
	close(r.over)
	for _, s := range r.sockets {
		if !r.handed {
			r.hearers.Go(func() { _ = s.Close() })
		}
	}
	bounded, cancel := context.WithTimeout(context.Background(), hearersEnd)
	defer cancel()
	if r.u.deaf.Leave(bounded, r.hearers.Wait) != nil {
		r.u.log.Warn("a file that the program sent to its notify socket does not close; the service does not wait for it",
			"service", r.u.cfg.Service)
	}
}

// started are the programs that were started so far.
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
