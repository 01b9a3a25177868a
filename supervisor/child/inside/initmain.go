package inside

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"understudy/supervisor/child/box"
	"understudy/supervisor/child/wire"
	"understudy/supervisor/guard"
)

// IsInit reports whether this process was started to be the stub of a tree; then main only calls InitMain.
func IsInit() bool { return strings.Contains(os.Args[0], initTitle) && len(os.Args) == 2 }

// HasOwnMounts reports whether this process runs under a stub, in a PID namespace with mounts of its own.
func HasOwnMounts() bool {
	first, err := os.ReadFile("/proc/1/cmdline")
	return err == nil && strings.HasPrefix(string(first), "understudy"+initTitle)
}

const (
	initTitle  = " init of "
	stubMounts = " with mounts" // after the kind: it may mount what it likes, because nobody else sees that
	stubSocket = 3
)

// stubArgs are the arguments of a stub's process: its name in ps, the tree's mark, and what it is to be, by which supervisor. Its
// descriptors 3 and, for a walk, box.StubDeadSignal are its socket and its dead signal.
func stubArgs(mark string, c box.Container, by string) []string {
	kind := c.Kind
	if c.MountNS {
		kind += stubMounts
	}
	return []string{"understudy" + initTitle + mark, kind + box.StubFor + by}
}

// inner is the state of a stub process.
type inner struct {
	kind   string
	mounts bool // it has mounts of its own
	socket int
	orders chan guard.Message // of the supervisor; closed when it is gone
	finish chan struct{}      // closed when the tree must end

	mu       sync.Mutex // guards the fields below; held across a fork, and across signals to the program
	pid      int        // the program; 0: not started, or reaped
	finished bool
}

const stubThreads = 6 // for reaping, listening, signals, and killing

// InitMain is the main function of a stub: it waits at its gate, runs the program and reaps its orphans. In a PID namespace,
// all processes end with it. In a walked tree it ends last, and only without children.
func InitMain() int {
	runtime.LockOSThread() // the program's death signal is bound to the thread that forks it
	box.ReserveThreads(stubThreads)
	unix.CloseOnExec(stubSocket)
	kind, _, _ := strings.Cut(os.Args[1], box.StubFor)
	kind, mounts := strings.CutSuffix(kind, stubMounts)
	i := &inner{kind: kind, mounts: mounts, socket: stubSocket, orders: make(chan guard.Message), finish: make(chan struct{})}
	signals := make(chan os.Signal, 16)
	// Not ignored: the program would inherit that, as it has to inherit the signals that the supervisor's own parent ignored.
	for _, s := range []os.Signal{unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT, unix.SIGPIPE, unix.SIGUSR1, unix.SIGUSR2} {
		if s == unix.SIGTERM || !signal.Ignored(s) {
			signal.Notify(signals, s)
		}
	}
	go func() { // ends with the process
		for s := range signals {
			if s == unix.SIGTERM && i.kind == box.KindWalk {
				i.end()
			}
		}
	}()
	if i.kind == box.KindWalk {
		unix.CloseOnExec(box.StubDeadSignal)
		defer func() { _ = box.Ring(box.StubDeadSignal) }() // on every way out there are no children
	}
	if err := i.prepare(); err != nil {
		i.send(&guard.Message{Op: wire.OpFailed, Why: err.Error()})
		return 125
	}
	return i.run()
}

// prepare sets this process up, before the first fork.
func (i *inner) prepare() error {
	_, mark, _ := strings.Cut(os.Args[0], initTitle)
	if err := os.WriteFile("/proc/self/comm", []byte(mark), 0); err != nil {
		return fmt.Errorf("own name: %w", err)
	}
	why := ""
	switch i.kind {
	case box.KindWalk:
		if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
			return fmt.Errorf("become subreaper: %w", err)
		}
	case box.KindPidNS:
		if os.Getpid() != 1 {
			return errors.New("not the init of a PID namespace")
		}
		if i.mounts { // else the program sees the host's pids, but is contained all the same
			if err := freshProc(); err != nil {
				why = err.Error()
			}
		}
	}
	i.send(&guard.Message{Op: wire.OpReady, Why: why})
	return nil
}

// freshProc shows the program its own namespace, in a mount namespace of its own.
func freshProc() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return fmt.Errorf("own mounts: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	return nil
}

func (i *inner) send(m *guard.Message) { _ = wire.SendFD(i.socket, m) }

// listen takes the supervisor's orders, until it is gone.
func (i *inner) listen() {
	defer close(i.orders)
	buf := make([]byte, wire.MaxPacket)
	for {
		m, err := wire.RecvFD(i.socket, buf)
		switch {
		case err == nil:
			i.orders <- m
		case errors.Is(err, unix.EAGAIN):
			wire.PollOne(i.socket, unix.POLLIN, time.Minute)
		default:
			return
		}
	}
}

func (i *inner) run() int {
	go i.listen() // ends with the process
	var order guard.Message
	select {
	case order = <-i.orders:
	case <-i.finish:
	}
	if order.Op != wire.OpOpen {
		return 0 // the gate never opened
	}
	pid, why := i.start(wire.FileOf(&order))
	if why != nil {
		i.send(why)
		return 126
	}
	i.letGo()
	i.send(&guard.Message{Op: wire.OpRuns, Number: pid})
	go i.obey() // ends with the process
	return i.reap(pid)
}

// start starts the program, and returns its pid, or why it does not run.
func (i *inner) start(order *os.File) (int, *guard.Message) {
	prog, err := readProgram(order)
	if err != nil {
		return 0, &guard.Message{Op: wire.OpFailed, Why: err.Error()}
	}
	i.mu.Lock()
	if i.finished {
		i.mu.Unlock()
		return 0, &guard.Message{Op: wire.OpFailed, Why: guard.ErrLeaseEnded.Error()}
	}
	l, err := Fork(-1)
	if err == nil {
		i.pid = l.Process.Pid // so that it can be ended while it becomes the program
	}
	i.mu.Unlock()
	if err != nil {
		return 0, &guard.Message{Op: wire.OpFailed, Number: int(errnoOf(err)), Why: err.Error()}
	}
	why, err := l.Become(context.Background(), prog, [3]*os.File{os.Stdin, os.Stdout, os.Stderr})
	if err == nil && why == nil {
		pid := l.Process.Pid
		_ = l.Process.Release() // the reaper reaps it with all the others
		return pid, nil
	}
	var ended syscall.WaitStatus
	if state, err := l.Process.Wait(); err == nil {
		ended = state.Sys().(syscall.WaitStatus)
	}
	switch {
	case why != nil:
	case errors.Is(err, ErrKilledEarly):
		why = &guard.Message{Op: wire.OpExited, Number: int(ended)}
	default:
		why = &guard.Message{Op: wire.OpFailed, Number: int(errnoOf(err)), Why: err.Error()}
	}
	return 0, why
}

// letGo closes the program's descriptors, so that the reader of its output sees the end when the last process of the tree has gone.
func (i *inner) letGo() {
	null, err := unix.Open(os.DevNull, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		null = 0
	}
	for fd := range 3 {
		_ = unix.Dup3(null, fd, 0) // EINVAL for the one that is it
	}
}

// obey passes signals on. When the supervisor is gone the tree ends: in a walked tree that is the stub's work.
func (i *inner) obey() {
	for m := range i.orders {
		if m.Op == wire.OpSignal {
			i.mu.Lock()
			if i.pid > 0 { // not yet reaped, so the pid is still the program's
				_ = unix.Kill(i.pid, unix.Signal(m.Number))
			}
			i.mu.Unlock()
		}
	}
	i.end()
}

// end lets no more program start, and kills until the reaper finds no child.
func (i *inner) end() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.finished {
		return
	}
	i.finished = true
	close(i.finish)
	if i.kind != box.KindWalk {
		_ = unix.Kill(-1, unix.SIGKILL) // P4: everything in the namespace but its init, which then finds its program dead
		return
	}
	go func() { // ends with the process, which ends when no process is left to kill
		for {
			_ = box.KillBelow(os.Getpid())
			wire.PollOne(-1, 0, 2*time.Millisecond)
		}
	}()
}

// reap waits for one child at a time, and only reap waits for children. It returns when the tree is over.
func (i *inner) reap(program int) int {
	code := 0
	for {
		var ws unix.WaitStatus
		pid, err := unix.Wait4(-1, &ws, 0, nil)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil && i.kind == box.KindPidNS: // ECHILD: no process is left that could be asked to end
			return code
		case err != nil:
			// ECHILD: the kernel's word that no process of a subreaper's tree is left, not even a zombie.
			<-i.finish
			return code
		case pid != program:
			continue
		}
		i.mu.Lock()
		i.pid = 0
		i.mu.Unlock()
		i.send(&guard.Message{Op: wire.OpExited, Number: int(ws)})
		code = ExitCode(syscall.WaitStatus(ws))
	}
}
