package child

import (
	"context"
	"os"
	"runtime"

	"understudy/supervisor/child/box"
)

const (
	mostProcessors    = 4      // of a supervisor, which has little to compute: each may take a thread at any moment
	supervisorThreads = 12 + 6 // for the calls that box limits; for signals, logs, files, and other calls into the kernel
)

// KeepThreads makes threads beforehand, so that this process, a supervisor, has them when the kernel may refuse new ones: for its work
// at the limit, and above all for ending programs.
func KeepThreads() {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(min(mostProcessors, runtime.GOMAXPROCS(0)))
	}
	box.ReserveThreads(supervisorThreads)
}

// spawner forks all processes from one thread: the signal that a child gets when its parent dies is bound to the thread that forked
// it, not to the process.
type spawner struct {
	thread  chan<- func() // the main thread, if the guard may have it; nil: one of its own
	jobs    chan func()
	stopped <-chan struct{}
}

// run runs the spawner until the guard has stopped.
func (s *spawner) run() {
	if s.thread == nil {
		s.work()
		return
	}
	over := make(chan struct{})
	select {
	case s.thread <- func() { defer close(over); s.work() }:
		<-over
	case <-s.stopped:
	}
}

func (s *spawner) work() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for {
		select {
		case job := <-s.jobs:
			job()
		case <-s.stopped:
			return
		}
	}
}

// do runs f on the spawning thread, and waits for it.
func (s *spawner) do(ctx context.Context, f func()) error {
	if ctx.Err() != nil { // if several channels are ready, a select takes any
		return context.Cause(ctx)
	}
	done := make(chan struct{})
	select {
	case s.jobs <- func() { defer close(done); f() }:
		<-done
		return nil
	case <-s.stopped:
		return ErrStopped
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
