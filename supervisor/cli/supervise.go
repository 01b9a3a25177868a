package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/oklog/run"

	"understudy/supervisor"
	"understudy/supervisor/child"
	"understudy/supervisor/control/web"
	"understudy/supervisor/handoff"
)

// supervise runs until a signal, or until all is done. A second signal kills the children instead of asking them.
func supervise(ctx context.Context, conf supervisor.Config, config *follower, wait *lockWait, server *web.Server, systemd *manager,
	next *handoff.Image) error {
	// The signals that end other commands are this one's own business.
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	child.KeepThreads()
	hurry := make(chan struct{})
	conf.Hurry = hurry
	thread := make(chan func())
	conf.Thread = thread
	var result error
	var group run.Group
	group.Add(func() error {
		status, err := supervisor.Run(ctx, conf)
		switch {
		case err == nil && status != nil:
			err = exitStatus(status.Code)
		case err == nil && wait != nil && wait.Over():
			err = errNoLock
		case err == nil && len(conf.Services) > 0 && conf.Services[0].Once: // a caller must not take this for the command's end
			err = errors.New("stopped before the command had run here")
		}
		result = err
		return nil
	}, func(error) { cancel() })
	beside := func(ctx context.Context, run func(context.Context) error) {
		ctx, enough := context.WithCancel(ctx)
		group.Add(func() error { return run(ctx) }, func(error) { enough() })
	}
	if config != nil {
		beside(ctx, config.run)
	}
	if wait != nil {
		beside(ctx, wait.run)
	}
	if server != nil {
		beside(context.WithoutCancel(ctx), server.Run) // for as long as the supervisor runs
	}
	if systemd != nil {
		beside(context.WithoutCancel(ctx), systemd.run)
	}
	beside(ctx, next.Run)

	ignored := make(chan os.Signal, 1)
	signal.Notify(ignored, syscall.SIGPIPE) // the log's reader is gone: no reason to stop a child
	defer signal.Stop(ignored)
	over := make(chan struct{})
	group.Add(func() error {
		for asked := 0; ; {
			select {
			case sig := <-next.Signals:
				if sig == syscall.SIGHUP && config != nil {
					systemd.hangup()
					config.asked()
					continue
				}
				conf.Logger.Info("stopping", "signal", sig.String())
				cancel()
				switch asked++; asked {
				case 1:
					systemd.stopping()
				case 2:
					close(hurry)
				}
			case answer := <-next.Heeded:
				answer <- next.MayGo(asked)
			case <-over:
				return nil
			}
		}
	}, func(error) { close(over) })
	if err := onMainThread(group.Run, thread); err != nil {
		return fmt.Errorf("run: %w", err)
	}
	return result
}

// onMainThread runs f in another goroutine, and here, where main has locked the thread, whatever has to run on the main thread.
func onMainThread(f func() error, thread <-chan func()) error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	for {
		select {
		case do := <-thread:
			do()
		case err := <-done:
			return err
		}
	}
}
