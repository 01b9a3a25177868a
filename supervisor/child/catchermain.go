package child

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"understudy/supervisor/guard"
)

const (
	catcherTitle  = "understudy: keeps signals for another version"
	catcherSocket = 3
	cldTrapped    = 4
	catchLimit    = 2 * time.Second // a catcher that hangs would hold its parent up
)

// IsCatcher reports whether this process was started to catch its parent's signals; then main only calls CatcherMain.
func IsCatcher() bool { return len(os.Args) == 1 && os.Args[0] == catcherTitle }

// caught are the signals that end a Go program which does not listen yet, without those that ask for a crash.
var caught = []unix.Signal{unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGUSR1, unix.SIGUSR2}

// catcher is the state of the process that keeps its parent's signals.
type catcher struct {
	socket int
	mu     sync.Mutex // held from the note of a signal until it is taken away, and on the way out
}

// CatcherMain is the main function of a catcher. Once told to, it traces its own parent, no other process, and reports the
// signals that it withholds. When the catcher ends, for any reason, the kernel ends the tracing. It ends when it is told to, when
// its parent ends, and after catchLimit.
func CatcherMain() int {
	signal.Ignore(unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGPIPE, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2,
		unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU)
	runtime.LockOSThread() // a tracer is a thread
	unix.CloseOnExec(catcherSocket)
	c := &catcher{socket: catcherSocket}
	buf := make([]byte, maxPacket)
	if err := sendFD(c.socket, &guard.Message{Op: opReady}); err != nil {
		return 1
	}
	pollOne(c.socket, unix.POLLIN, time.Hour)
	order, err := recvFD(c.socket, buf)
	if err != nil || order.Op != opCatch {
		return 0 // it is not needed
	}
	if err := seize(order.Number); err != nil {
		_ = sendFD(c.socket, &guard.Message{Op: opFailed, Why: err.Error()})
		return 1
	}
	go func() { // ends with the process
		pollOne(c.socket, unix.POLLIN, catchLimit)
		c.mu.Lock()
		os.Exit(0)
	}()
	if err := sendFD(c.socket, &guard.Message{Op: opReady}); err != nil {
		return 1
	}
	for c.turn() {
	}
	return 0
}

// seize begins to trace all threads of the process, which has to be the parent.
func seize(pid int) error {
	if pid != os.Getppid() {
		return fmt.Errorf("process %d is not the parent of this one", pid)
	}
	seen := map[int]bool{}
	for fresh := true; fresh; { // a thread made meanwhile by a traced one is traced as well
		fresh = false
		all, err := os.ReadDir("/proc/" + strconv.Itoa(pid) + "/task")
		if err != nil {
			return err
		}
		for _, entry := range all {
			tid, err := strconv.Atoi(entry.Name())
			if err != nil || seen[tid] {
				continue
			}
			seen[tid] = true
			if err = ptrace(unix.PTRACE_SEIZE, tid, unix.PTRACE_O_TRACECLONE); err == nil {
				fresh = true
			} else if tid == pid {
				return fmt.Errorf("trace process %d: %w", pid, err)
			}
		}
	}
	return nil
}

func ptrace(request, tid, data int) error {
	if _, _, errno := unix.Syscall6(unix.SYS_PTRACE, uintptr(request), uintptr(tid), 0, uintptr(data), 0, 0); errno != 0 {
		return errno
	}
	return nil
}

// event is the result of waitid(2) for a thread: a siginfo_t.
type event struct {
	_, _, code   int32
	_            [0]uintptr // the rest begins where a pointer may
	pid, _, stop int32
	_            [128]byte
}

// turn lets the next stopped thread go on, and reports whether there may be another one. It reaps a thread that has ended, as all but
// one do in an exec: the exec waits for that.
func (c *catcher) turn() bool {
	var e event
	// WNOWAIT: otherwise, if this process died now, the thread would go on without the signal.
	_, _, errno := unix.Syscall6(unix.SYS_WAITID, unix.P_ALL, 0, uintptr(unsafe.Pointer(&e)), unix.WEXITED|unix.WSTOPPED|unix.WNOWAIT|unix.WALL, 0, 0)
	tid := int(e.pid)
	switch {
	case errno != 0:
		return errno == unix.EINTR
	case e.code != cldTrapped:
		_, err := unix.Wait4(tid, nil, unix.WNOHANG|unix.WALL, nil)
		return err == nil || errors.Is(err, unix.EINTR)
	}
	// A thread that was killed meanwhile is no error: turn waits for it as for the others.
	switch sig, event := unix.Signal(e.stop&0x7f), int(e.stop)>>8; {
	case event == unix.PTRACE_EVENT_STOP && sig != unix.SIGTRAP: // the process is stopped, and stays so until SIGCONT
		_ = ptrace(unix.PTRACE_LISTEN, tid, 0)
	case event != 0:
		_ = ptrace(unix.PTRACE_CONT, tid, 0)
	case slices.Contains(caught, sig):
		c.keep(tid, sig)
	default:
		_ = ptrace(unix.PTRACE_CONT, tid, int(sig))
	}
	return true
}

// keep notes a signal and removes it. One that it cannot note comes through: no signal is lost.
func (c *catcher) keep(tid int, sig unix.Signal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	through := 0
	if err := sendFD(c.socket, &guard.Message{Op: opSignal, Number: int(sig)}); err != nil {
		through = int(sig)
	}
	_ = ptrace(unix.PTRACE_CONT, tid, through)
}
