package child

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"

	"understudy/supervisor/child/wire"
)

// A stop that comes while a program is let go finds a program to ask, not one to kill.
func TestWhatWasLetGoIsWaitedFor(t *testing.T) {
	ours, theirs, err := wire.SocketPair()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	l := &launch{report: ours}
	go func() { // the program
		if n, err := theirs.Read(make([]byte, 1)); n == 1 && err == nil {
			cancel(errors.New("stop"))
			time.Sleep(20 * time.Millisecond) // its exec takes its time: nothing may come of the stop meanwhile
		}
		_ = theirs.Close()
	}()
	if m, err := l.open(ctx, [3]*os.File{os.Stdin, os.Stdout, os.Stderr}); m != nil || err != nil {
		t.Errorf("%+v %v", m, err)
	}
}

// A copy of a supervisor that waits at its gate keeps no connection of the supervisor's open, and runs nothing once that is gone.
func TestACopyAtItsGateHoldsNothingOfOurs(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	ran := filepath.Join(t.TempDir(), "ran")
	l := &launch{cgroup: -1}
	defer l.discard()
	if l.fork(); l.err != nil {
		t.Fatal(l.err)
	}
	steps, err := (&program{Path: "/bin/sh", Argv: []string{"sh", "-c", "touch " + ran}}).steps(l.order)
	if err == nil {
		err = l.order.follow(steps)
	}
	if err != nil {
		t.Fatal(err)
	}
	until(t, "it holds its own descriptors only", func() bool {
		fds, err := os.ReadDir("/proc/" + strconv.Itoa(l.process.Pid) + "/fd")
		return err == nil && len(fds) == 4
	})
	_ = l.report.Close()
	state, err := l.process.Wait()
	if err != nil || state.ExitCode() != 126 && state.Sys().(syscall.WaitStatus).Signal() != syscall.SIGPIPE {
		t.Errorf("it ended with %v, %v", state, err)
	}
	l.process = nil
	if _, err := os.Stat(ran); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the program ran: %v", err)
	}
}
