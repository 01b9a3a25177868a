package child

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"understudy/supervisor/guard"
)

// From an exec until the next image listens, a signal that ends a program by default ends the supervisor, and its programs with it:
// Go cannot delay such a signal, neither by a mask, which it changes before it can receive signals, nor in the moment between its own
// handlers and the program's. A tracer can. So another process, the catcher, traces this one for those milliseconds, removes such
// signals, and reports them by a socket that stays open over the exec; the next image sends them to itself once it listens. Nothing
// depends on the catcher: without it, or when it dies, an exec works as without a tracer. A SIGSTOP to the catcher in these
// milliseconds freezes this process, as a SIGSTOP to this one would; the guardians keep P3 then as ever.

// CatcherEnv is the variable by which an image of this process finds the catcher of the former one: the number of its socket, a dot,
// and its process id.
const CatcherEnv = "UNDERSTUDY_CATCHER"

const (
	catcherLimit  = 200 * time.Millisecond // of a catcher: leases run out meanwhile
	catcherDies   = time.Second
	catcherStarts = 5 * time.Second
	catcherProcs  = "GOMAXPROCS=3"
)

// Catcher is a process that can keep signals for this one.
type Catcher struct {
	process *os.Process
	link    link
}

// StartCatcher starts one, which waits for its order. It has no death signal, for any thread may fork it: it sees its socket's end.
func StartCatcher() (*Catcher, error) {
	return startCatcher(catcherStarts, "/proc/self/exe", catcherTitle)
}

func startCatcher(limit time.Duration, exe string, args ...string) (*Catcher, error) {
	ours, theirs, err := socketPair()
	if err != nil {
		return nil, err
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, errors.Join(err, ours.Close(), theirs.Close())
	}
	defer null.Close()
	process, err := os.StartProcess(exe, args, &os.ProcAttr{
		Dir: "/", Env: append(Environ(), catcherProcs, "GOGC=off"), Files: []*os.File{null, null, null, theirs},
		Sys: &syscall.SysProcAttr{Setsid: true}, // a terminal's signals do not reach it
	})
	_ = theirs.Close() // so that its end shows at ours, even before its first message
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start a catcher of signals: %w", err), ours.Close())
	}
	c := &Catcher{process: process, link: link{ours}}
	if err := c.ready(limit); err != nil {
		return nil, errors.Join(err, c.Kill(), c.Release())
	}
	return c, nil
}

// Catch makes the catcher keep signals from now on. A thread of this process has taken the earlier ones.
func (c *Catcher) Catch() error {
	// If Yama lets only ancestors trace, this allows the catcher. Without Yama, the kernel does not know the call.
	_ = unix.Prctl(unix.PR_SET_PTRACER, uintptr(c.process.Pid), 0, 0, 0)
	if err := c.link.send(&guard.Message{Op: opCatch, Number: os.Getpid()}); err != nil {
		return err
	}
	return c.ready(catcherLimit)
}

// ready waits for the catcher's next answer.
func (c *Catcher) ready(limit time.Duration) error {
	if err := c.link.file.SetReadDeadline(time.Now().Add(limit)); err != nil {
		return err
	}
	m, err := c.link.receive(make([]byte, maxPacket))
	switch {
	case err != nil:
		return fmt.Errorf("answer of the catcher of signals: %w", err)
	case m.Op != opReady:
		return errors.New(m.Why)
	}
	return nil
}

// entry is the value for CatcherEnv, with a descriptor of the socket that stays open over an exec.
func (c *Catcher) entry(fd int) string {
	return CatcherEnv + "=" + strconv.Itoa(fd) + "." + strconv.Itoa(c.process.Pid)
}

// Kill kills a catcher that does not answer, before Release.
func (c *Catcher) Kill() error { return c.process.Kill() }

// Release ends the catcher, and sends the caught signals to this process, which listens.
func (c *Catcher) Release() error {
	// This tells it to end, even if other processes have copies of the socket.
	_ = using(c.link.file, func(fd int) error { return unix.Shutdown(fd, unix.SHUT_WR) })
	err := c.link.file.SetReadDeadline(time.Now().Add(catcherLimit))
	var kept []unix.Signal
	killed := false
	buf := make([]byte, maxPacket)
	for err == nil {
		var m guard.Message
		m, err = c.link.receive(buf)
		switch {
		case err == nil && m.Op == opSignal:
			kept = append(kept, unix.Signal(m.Number))
		case errors.Is(err, os.ErrDeadlineExceeded) && !killed: // after its death we can read all its messages
			killed = true // do not wait for other processes with a copy of its socket
			err = errors.Join(c.process.Kill(), c.link.file.SetReadDeadline(time.Now().Add(catcherDies)))
		}
	}
	if errors.Is(err, unix.ECONNRESET) {
		err = nil
	}
	_, waited := c.process.Wait() // only then is this process not traced any more
	for _, sig := range kept {
		err = errors.Join(err, unix.Kill(os.Getpid(), sig))
	}
	return errors.Join(err, waited, c.link.file.Close())
}

// Caught is for an image that listens by now: it gets the signals of the time when its former image could not listen any more. Call
// it before the first fork.
func Caught() error {
	entry, ok := os.LookupEnv(CatcherEnv)
	if !ok {
		return nil
	}
	_ = os.Unsetenv(CatcherEnv)
	first, second, _ := strings.Cut(entry, ".")
	fd, err := strconv.Atoi(first)
	pid, err2 := strconv.Atoi(second)
	if err != nil || err2 != nil || fd < 3 || pid < 2 {
		return errors.New("there is no such catcher of signals")
	}
	if own, err := statOf(pid); err != nil || own.ppid != os.Getpid() {
		return errors.Join(fmt.Errorf("process %d catches no signals for this one", pid), unix.Close(fd), err)
	}
	process, err := os.FindProcess(pid)
	if err != nil {
		return err
	}
	return (&Catcher{process: process, link: link{inherited(fd, "catcher")}}).Release()
}
