package unit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"understudy/supervisor/child"
	"understudy/supervisor/child/notify"
	"understudy/supervisor/child/probe"
	"understudy/supervisor/config"
	"understudy/supervisor/host"
	"understudy/supervisor/wait"
)

// rise starts the programs, or promotes one that runs, closes ready, and watches their health until the run has ended.
func (r *Run) rise(ctx context.Context) {
	if err := r.startAll(ctx); err != nil {
		r.end(err)
		return
	}
	if r.cfg.Adopt == nil && slow(r.cfg.Conf) {
		r.u.log.Info("the service is ready", "service", r.u.cfg.Service, "token", r.cfg.Token)
	}
	close(r.ready)
	r.watch.checkUntilEnd(ctx)
}

// startAll starts the programs in their order, each group once the one before it is ready. A copy, which runs already unless it is a warm
// program's, is promoted first, so that no client reaches a follower, or what is not the primary yet, through an address of the service.
func (r *Run) startAll(ctx context.Context) error {
	started := r.started()
	for _, p := range started {
		r.mind(p)
	}
	switch {
	case r.cfg.Adopt != nil && r.cfg.Promote == nil:
		r.attend(ctx)
		return nil
	case r.cfg.Fault != nil:
		return &StartError{r.cfg.Fault}
	}
	rest := r.cfg.Conf
	rest.Processes = rest.Processes[len(started):]
	groups := rest.Groups()
	if r.cfg.Promote != nil && len(started) == 0 {
		if err := r.startTogether(ctx, groups[0]); err != nil {
			return err
		}
		groups = groups[1:]
	}
	r.follower = counts{len(r.started()), len(r.sockets)}
	if err := r.promote(ctx); err != nil {
		return err
	}
	for _, group := range groups {
		if err := r.startTogether(ctx, group); err != nil {
			return err
		}
	}
	hook := r.cfg.Conf.Hooks.OnActive
	if len(hook.Command) == 0 {
		return nil
	}
	spec, began := child.Spec{Argv: hook.Command, Env: r.u.Facts(r.cfg.Token)}, time.Now()
	defer func() { r.hooked = time.Since(began) }()
	if err := r.u.inTree(ctx, r.cfg.Tree, "on_active", spec, hook.Timeout); err != nil {
		return fmt.Errorf("%w: %w", ErrHook, err)
	}
	return nil
}

// startTogether starts programs, and waits until all of them are ready.
func (r *Run) startTogether(ctx context.Context, group []config.Process) error {
	var all []func() error
	for _, prog := range group {
		ready, err := r.start(ctx, prog)
		if err != nil {
			return &StartError{err}
		}
		all = append(all, ready)
	}
	for _, ready := range all {
		if err := ready(); err != nil {
			return err
		}
	}
	return nil
}

// start starts one program. ready waits until it is ready; a oneshot, until it has ended.
func (r *Run) start(ctx context.Context, prog config.Process) (ready func() error, err error) {
	spec, socket, err := r.u.spec(ctx, r.cfg.Tree, prog, r.cfg.Token)
	if err != nil {
		return nil, err
	}
	spec.Stdin = r.cfg.Stdin
	spec.Env = append(spec.Env, r.cfg.Env...)
	release, err := mark(r.u.cfg.Service, &spec)
	if err != nil { // then it writes to our stream
		r.u.log.Debug("the program has no stream of its own to the journal", r.named(prog, "error", err)...)
	}
	defer release()
	if err := r.u.shield(ctx, &spec); err != nil {
		return nil, err
	}
	if socket != nil {
		r.hear(ctx, socket)
	}
	if prog.Oneshot && len(prog.Undo) > 0 { // before it can have an effect
		if err := r.u.undos.add(PendingUndo{
			Name: prog.Name, Command: prog.Undo, Timeout: prog.UndoTimeout, Token: r.cfg.Token, Undone: prog.Undone,
			Address: setBy(prog), Lasts: prog.SurvivesBoot,
		}); err != nil {
			return nil, err
		}
		if err := r.noteUndos(ctx); err != nil {
			return nil, err
		}
	}
	if at := cmp.Or(prog.Ready.TCP, addressOf(prog.Ready.HTTP)); probe.Taken(at) {
		r.u.log.Warn("another program answers in place of this one, which counts as ready at once", r.named(prog, "address", at)...)
	}
	if err := r.cfg.MayStart(); err != nil { // P1: check again, whatever the caller knew when the run began
		return nil, err
	}
	p, err := r.cfg.Tree.Start(ctx, spec)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	one := part{prog, p, socket}
	r.parts = append(r.parts, one)
	r.mu.Unlock()
	r.u.log.Info("program started", r.named(prog, "pid", p.Pid(), "token", r.cfg.Token)...)
	if prog.Oneshot {
		return func() error { return r.await(ctx, one) }, nil
	}
	r.mind(one)
	return func() error { return r.waitReady(ctx, prog, p, socket) }, nil
}

// hear receives a program's notifications, until the run is over.
func (r *Run) hear(ctx context.Context, socket *notify.Socket) {
	r.sockets = append(r.sockets, socket)
	socket.Claimed, socket.Lost = r.cfg.Claimed, r.cfg.Lost
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	r.hearers.Go(func() {
		<-r.over
		cancel()
	})
	r.hearers.Go(func() {
		if err := socket.Run(ctx); err != nil {
			r.u.log.Debug("cannot receive the program's notifications", "service", r.u.cfg.Service, "error", err)
		}
	})
}

// mind ends the run when a program that is no oneshot ends.
func (r *Run) mind(p part) {
	if p.Oneshot {
		return
	}
	r.hearers.Go(func() {
		select {
		case <-p.process.Done():
			r.end(r.endOf(p))
		case <-r.over:
		}
	})
}

// ended is why a run ends with a program.
func (p part) ended() error {
	e := &Ended{Name: p.Name, Status: ExitOf(p.process)}
	if p.Member && p.socket != nil {
		e.Why = p.socket.Why()
	}
	if p.Member && (e.Status.Code == config.ExitUnfit || e.Status.Code == config.ExitNothing) {
		return &Unfit{e}
	}
	return e
}

// await waits for a oneshot's end.
func (r *Run) await(ctx context.Context, prog part) error {
	if prog.Ready.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, prog.Ready.Timeout,
			fmt.Errorf("%s has not ended within %v", called(prog.Name), prog.Ready.Timeout))
		defer cancel()
	}
	select {
	case <-prog.process.Done():
	case <-ctx.Done():
		return overdue(ctx, prog.Process)
	}
	status := ExitOf(prog.process)
	if prog.Member && status.Code == config.ExitNothing {
		r.u.undos.drop(prog.Name)
	}
	if status.Code != 0 {
		return prog.ended()
	}
	return nil
}

// overdue is why the wait for a program ended before it did what it should.
func overdue(ctx context.Context, prog config.Process) error {
	err := context.Cause(ctx)
	if prog.Member && errors.Is(ctx.Err(), context.DeadlineExceeded) { // what does not answer here may answer another host
		err = &Unfit{err}
	}
	return err
}

// waited is a check that a program is ready, which tells what it waits for once that takes long.
type waited struct {
	probe.Checker
	since time.Time
	tell  func(why string) // RunConfig.Health
	told  bool
}

// longStart is how long a start is nothing that needs a reason.
const longStart = 2 * time.Second

// Check tells the first reason only, since each is a write for all to see.
func (w *waited) Check(ctx context.Context) error {
	err := w.Checker.Check(ctx)
	switch {
	case err == nil && w.told:
		w.tell("")
	case err != nil && !w.told && time.Since(w.since) > longStart:
		w.told = true
		w.tell("not ready yet: " + err.Error())
	}
	return err
}

// waitReady waits until a program says, or shows, that it has started.
func (r *Run) waitReady(ctx context.Context, prog config.Process, p host.Process, socket *notify.Socket) error {
	how := prog.Ready
	checker := r.checker(prog, how.TCP, how.HTTP, how.Exec)
	switch {
	case socket != nil:
		bounded, cancel := context.WithTimeoutCause(ctx, how.Timeout,
			fmt.Errorf("%s has not sent READY=1 within %v", called(prog.Name), how.Timeout))
		defer cancel()
		select {
		case <-socket.Ready():
		case <-bounded.Done():
			return overdue(bounded, prog)
		}
	case checker != nil:
		checker = &waited{Checker: checker, since: time.Now(), tell: r.cfg.Health}
		if err := probe.WaitReady(ctx, how.Timeout, checker); err != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return fmt.Errorf("%s is %w", called(prog.Name), err)
		}
	case how.After > 0:
		if !wait.For(ctx, how.After) {
			return context.Cause(ctx)
		}
	default:
		return nil
	}
	r.u.log.Info("program ready", r.named(prog, "pid", p.Pid())...)
	return nil
}
