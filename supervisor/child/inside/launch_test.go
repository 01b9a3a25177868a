package inside

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"understudy/supervisor/child/wire"
	"understudy/supervisor/testbed/must"
)

// A stop that comes while a program is let go finds a program to ask, not one to kill.
func TestWhatWasLetGoIsWaitedFor(t *testing.T) {
	ours, theirs, err := wire.SocketPair()
	must.OK(t, err)
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
	must.OK(t, err)
	steps, err := (&Program{Path: "/bin/sh", Argv: []string{"sh", "-c", "touch " + ran}}).steps(l.order)
	if err == nil {
		err = l.order.follow(steps)
	}
	must.OK(t, err)
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

// A copy has none of the supervisor's heap: to copy the page tables of a large one took most of a start. Other forks have it, as before.
func TestACopyHasNoHeapOfOurs(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	signal.Notify(make(chan os.Signal, 1), syscall.SIGUSR1)
	defer signal.Reset(syscall.SIGUSR1)
	l, err := Fork(-1)
	must.OK(t, err)
	defer l.Discard()
	var copied uintptr
	heap := ownHeap()
	for line := range strings.Lines(procFile(t, l.Process.Pid, "maps")) {
		var e extent
		if n, err := fmt.Sscanf(line, "%x-%x", &e.low, &e.high); n != 2 {
			t.Fatal(line, err)
		}
		if heap.contains(e.low) {
			copied += e.high - e.low
		}
	}
	if stack := 3 * uintptr(os.Getpagesize()); copied != stack {
		t.Errorf("it has %d bytes of our heap, want the stack's %d", copied, stack)
	}
	for limit := time.Now().Add(20 * time.Second); ; runtime.Gosched() {
		status := procFile(t, l.Process.Pid, "status")
		const zero = "\t0000000000000000\n"
		if strings.Contains(status, "SigBlk:"+zero) && strings.Contains(status, "SigCgt:"+zero) {
			break
		}
		if time.Now().After(limit) {
			t.Fatalf("it blocks or catches signals: %s", status)
		}
	}
	if flags := procFile(t, os.Getpid(), "smaps"); strings.Contains(flags, " dc ") {
		t.Error("other forks lack memory, too")
	}
}

func procFile(t *testing.T, pid int, name string) string {
	raw, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), name))
	must.OK(t, err)
	return string(raw)
}

func TestTheHeapIsFound(t *testing.T) {
	const maps = `00400000-00d89000 r-xp 00000000 fe:00 11211047                           /usr/bin/understudy
00d89000-03825000 rw-p 00000000 00:00 0 
1cc08000-1cc29000 rw-p 00000000 00:00 0                                  [heap]
c000000000-c002000000 rw-p 00000000 00:00 0                              [anon: Go: heap]
c002000000-c003000000 rw-p 00000000 00:00 0 
c003000000-c004000000 ---p 00000000 00:00 0 
c010000000-c010001000 rw-s 00000000 00:01 5                              /dev/zero (deleted)
7f8e967fd000-7f8e967fe000 ---p 00000000 00:00 0 
7ffd967fd000-7ffd967fe000 r-xp 00000000 00:00 0                          [vdso]
`
	for known, want := range map[uintptr]extent{
		0xc000000000:   {0xc000000000, 0xc010000000}, // not what is mapped above
		0xc003ffffff:   {0xc000000000, 0xc010000000},
		0x1cc08000:     {0x1cc08000, 0x1cc08000 + heapGrows},
		0xc004000000:   {}, // in the gap
		0xc010000000:   {}, // a file
		0x400000:       {},
		0x7f8e967fd000: {0x7f8e967fd000, 0x7f8e967fd000 + heapGrows},
	} {
		if got := heapIn([]byte(maps), known); got != want {
			t.Errorf("%x: %x, want %x", known, got, want)
		}
	}
	if got := heapIn([]byte("c000000000-c002000000 rw-p\n"), 0xc000000000); got != (extent{}) {
		t.Errorf("from what is not understood: %x", got)
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
		must.OK(t, err)
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
