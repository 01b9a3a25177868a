package inside

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
	"unsafe"

	"understudy/supervisor/child/wire"
)

// A stop that comes while a program is let go finds a program to ask, not one to kill.
func TestWhatWasLetGoIsWaitedFor(t *testing.T) {
	ours, theirs, err := wire.SocketPair()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	l := &Launch{report: ours}
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
	l, err := Fork(-1)
	if err != nil {
		t.Fatal(err)
	}
	steps, err := (&Program{Path: "/bin/sh", Argv: []string{"sh", "-c", "touch " + ran}}).steps(l.order)
	if err == nil {
		err = l.order.follow(steps)
	}
	if err != nil {
		t.Fatal(err)
	}
	for limit := time.Now().Add(20 * time.Second); ; runtime.Gosched() {
		fds, err := os.ReadDir("/proc/" + strconv.Itoa(l.Process.Pid) + "/fd")
		if err == nil && len(fds) == 4 {
			break
		}
		if time.Now().After(limit) {
			t.Fatalf("it holds more than its own descriptors: %v, %v", fds, err)
		}
	}
	_ = l.report.Close()
	state, err := l.Process.Wait()
	if err != nil || state.ExitCode() != 126 && state.Sys().(syscall.WaitStatus).Signal() != syscall.SIGPIPE {
		t.Errorf("it ended with %v, %v", state, err)
	}
	l.Free()
	if _, err := os.Stat(ran); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the program ran: %v", err)
	}
}

// What a copy did not live to say is not taken for success.
func TestACopyIsBelievedAsFarAsItGot(t *testing.T) {
	stopped := errors.New("stopped")
	for name, c := range map[string]struct {
		says report
		dies bool
		stop bool
		err  error
	}{
		"killed before its gate was opened": {dies: true, err: ErrKilledEarly},
		"became the program":                {},
		"a step failed":                     {says: report{3, 1}},
		"silent":                            {stop: true, err: stopped},
	} {
		ours, theirs, err := wire.SocketPair()
		if err != nil {
			t.Fatal(err)
		}
		if c.says.step > 0 {
			if _, err := theirs.Write((*[unsafe.Sizeof(c.says)]byte)(unsafe.Pointer(&c.says))[:]); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		l := &Launch{report: ours}
		switch {
		case c.dies:
			_ = theirs.Close()
		case c.stop:
			cancel(stopped)
		default:
			time.AfterFunc(10*time.Millisecond, func() { _ = theirs.Close() })
		}
		m, err := l.open(ctx, [3]*os.File{os.Stdin, os.Stdout, os.Stderr})
		if !errors.Is(err, c.err) || (m != nil) != (c.says.step > 0) || m != nil && (m.Index != 3 || m.Number != 1) {
			t.Errorf("%s: %+v %v", name, m, err)
		}
		cancel(nil)
	}
}
