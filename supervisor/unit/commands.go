package unit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"understudy/supervisor/child"
	"understudy/supervisor/child/runas"
	"understudy/supervisor/config"
	"understudy/supervisor/host"
	"understudy/supervisor/wait"
)

// Commands runs commands that are no part of a run, each in its own tree and under its own lease: the guardians end it, with all that it
// forked, if it takes too long or this supervisor dies. All units of a supervisor share it.
type Commands struct {
	guard func() host.Guard
	now   func() time.Duration
	begun atomic.Uint64 // numbers the leases; those of sessions count from 1
}

// NewCommands runs commands under a guard, which may be started later, before the first command; now is CLOCK_BOOTTIME.
func NewCommands(guard func() host.Guard, now func() time.Duration) *Commands {
	return &Commands{guard: guard, now: now}
}

const firstCommand = 1 << 32

const (
	// slack is how long we may take to kill a command before the guardians kill it.
	slack = 2 * time.Second
	// proofPatience bounds one attempt to prove a death.
	proofPatience = 5 * time.Second
)

// Begun counts the started commands. The next image of this process continues the count.
func (c *Commands) Begun() uint64 { return c.begun.Load() }

// GoOn continues a previous image's count.
func (c *Commands) GoOn(begun uint64) { c.begun.Store(begun) }

// run runs a command in a tree with this name.
func (c *Commands) run(
	ctx context.Context, reach *wait.Reach, name string, spec child.Spec, limit time.Duration,
) (result child.Result, err error) {
	epoch, guard := firstCommand+c.begun.Add(1), c.guard()
	if err := guard.Begin(epoch, nil); err != nil {
		return result, fmt.Errorf("tell the guardians: %w", err)
	}
	defer func() {
		if fin := guard.Finish(epoch); fin != nil {
			err = errors.Join(err, fmt.Errorf("tell the guardians: %w", fin))
		}
	}()
	if err := guard.Extend(epoch, c.now()+limit+slack); err != nil {
		return result, fmt.Errorf("tell the guardians: %w", err)
	}
	tree, err := guard.NewTree(ctx, epoch, name, nil)
	if err != nil {
		return result, fmt.Errorf("make a container: %w", err)
	}
	defer func() {
		if end := endTree(ctx, tree); end != nil {
			err = &unprovedCommand{tree, errors.Join(err, end)}
		}
	}()
	return child.Output(ctx, reach, tree.Start, spec)
}

// Run runs a command that belongs to no service. Its output is the end of the error, if it fails.
func (c *Commands) Run(ctx context.Context, name string, spec child.Spec, limit time.Duration) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("killed: it took longer than %v", limit))
	defer cancel()
	spec.Env = slices.Concat(runas.Environ(), spec.Env)
	result, err := c.run(ctx, &wait.Reach{}, name, spec, limit)
	if err == nil && result.Status.Code != 0 {
		err = errors.New(Describe(result.Status) + lastLine(strings.TrimSpace(strings.ToValidUTF8(string(result.Output), "?"))))
	}
	return err
}

// unprovedCommand is a command of which some process is not proved dead. Its tree is killed on.
type unprovedCommand struct {
	tree host.Tree
	error
}

func (u *unprovedCommand) Unwrap() error { return u.error }

func endTree(ctx context.Context, tree host.Tree) error {
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), proofPatience)
	defer cancel()
	return tree.End(bounded)
}

// Lease is one that needs no session.
type Lease struct {
	Epoch uint64
	guard host.Guard
}

// Finish forgets the lease, once its tree has ended.
func (l *Lease) Finish() error { return l.guard.Finish(l.Epoch) }

// Lease is one that a previous image of this process has begun.
func (c *Commands) Lease(epoch uint64) *Lease { return &Lease{epoch, c.guard()} }

// NewTree makes a tree under a lease of its own, that lasts for d.
func (c *Commands) NewTree(ctx context.Context, name string, d time.Duration) (tree host.Tree, lease *Lease, err error) {
	lease = c.Lease(firstCommand + c.begun.Add(1))
	if err := lease.guard.Begin(lease.Epoch, nil); err != nil {
		return nil, nil, fmt.Errorf("tell the guardians: %w", err)
	}
	if err = lease.guard.Extend(lease.Epoch, c.now()+d); err == nil {
		tree, err = lease.guard.NewTree(ctx, lease.Epoch, name, nil)
	}
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("make a container: %w", err), lease.Finish())
	}
	return tree, lease, nil
}

// Command runs a command outside any session. what names it in the log.
func (u *Unit) Command(ctx context.Context, what string, spec child.Spec, limit time.Duration) error {
	return u.command(ctx, what, spec, limit, func(ctx context.Context, spec child.Spec) (child.Result, error) {
		return u.cfg.Commands.run(ctx, &u.reach, u.cfg.Service+"/"+what, spec, limit)
	})
}

// Unfit asks a command of config.Service.Members why this host is not fit; "": it is, or gives no answer.
func (u *Unit) Unfit(ctx context.Context, what string, spec child.Spec, limit time.Duration) (why string) {
	exited, ended := errors.AsType[*Exited](u.Command(ctx, what, spec, limit))
	if !ended || exited.Code != config.ExitUnfit {
		return ""
	}
	last := exited.Said[strings.LastIndexByte(exited.Said, '\n')+1:]
	return strings.TrimPrefix(cmp.Or(last, exited.Error()), "understudy: ")
}

// inTree runs a command in a run's own tree: it dies with the programs at the latest.
func (u *Unit) inTree(ctx context.Context, tree host.Tree, what string, spec child.Spec, limit time.Duration) error {
	return u.command(ctx, what, spec, limit, func(ctx context.Context, spec child.Spec) (child.Result, error) {
		return child.Output(ctx, &u.reach, tree.Start, spec)
	})
}

// command bounds a command, logs its output, and turns its exit status into an error.
func (u *Unit) command(
	ctx context.Context, what string, spec child.Spec, limit time.Duration, run func(context.Context, child.Spec) (child.Result, error),
) error {
	ctx, calm := u.hurried(ctx)
	defer calm()
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("killed: it took longer than %v", limit))
	defer cancel()
	spec.Env = slices.Concat(runas.Environ(), spec.Env)
	if what == asksUndone { // then its output is that of stderr
		null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		defer null.Close()
		spec.Stdout, spec.Aside = null, true
	}
	result, err := run(ctx, spec)
	said := strings.TrimSpace(strings.ToValidUTF8(string(result.Output), "?"))
	if said != "" {
		u.log.Info("output of "+what, "service", u.cfg.Service, "output", said)
	}
	switch {
	case err != nil:
		return err
	case result.Status.Code != 0 && result.Status.Signal == 0 && !result.Status.Unknown:
		return &Exited{result.Status.Code, said}
	case result.Status.Code != 0:
		return errors.New(Describe(result.Status) + lastLine(said))
	case said != "" && what == asksUndone:
		return errors.New(Describe(result.Status) + ", with a complaint" + lastLine(said))
	}
	return err
}

// Exited is a command that has ended by itself, with another exit code than 0.
type Exited struct {
	Code int
	Said string // the end of its output
}

func (e *Exited) Error() string { return Describe(child.ExitStatus{Code: e.Code}) + lastLine(e.Said) }

// lastLine is the last of an output, to follow on what ended.
func lastLine(said string) string {
	if said == "" {
		return ""
	}
	return ": " + said[strings.LastIndexByte(said, '\n')+1:]
}

// hurried returns a context that also ends when an operator has asked for the end twice.
func (u *Unit) hurried(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-u.cfg.Hurry:
			cancel(errors.New("killed: asked again to stop"))
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}
