package kit

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"understudy/supervisor/testbed/must"
)

// Terminal is a pseudo-terminal with a command in it.
type Terminal struct {
	cmd    *exec.Cmd
	master *os.File
	ended  chan struct{}

	mu  sync.Mutex // guards out
	out bytes.Buffer
}

// Terminal starts a command of understudy in a terminal of that size. It is killed when the test ends.
func (h *Host) Terminal(tb testing.TB, rows, columns int, env []string, args ...string) *Terminal {
	tb.Helper()
	return h.TerminalOf(tb, rows, columns, env, UnderstudyBinary(tb), args...)
}

// TerminalOf is Terminal for any command.
func (h *Host) TerminalOf(tb testing.TB, rows, columns int, env []string, name string, args ...string) *Terminal {
	tb.Helper()
	master, slave, err := openTerminal()
	if err != nil {
		tb.Fatalf("open a terminal: %v", err)
	}
	defer slave.Close()
	t := &Terminal{cmd: h.Command(name, args...), master: master, ended: make(chan struct{})}
	t.Resize(tb, rows, columns)
	t.cmd.Stdin, t.cmd.Stdout, t.cmd.Stderr = slave, slave, slave
	t.cmd.Env = append(os.Environ(), env...)
	t.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	must.OK(tb, start(t.cmd))
	read := make(chan struct{})
	go func() {
		defer close(read)
		buf := make([]byte, 4096)
		for {
			n, err := master.Read(buf) // EIO: the other side is closed
			t.mu.Lock()
			t.out.Write(buf[:n])
			t.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	go func() {
		_ = t.cmd.Wait() // the exit code is read from ProcessState
		<-read
		close(t.ended)
	}()
	tb.Cleanup(func() {
		_ = t.cmd.Process.Kill() // it may have ended
		<-t.ended
		master.Close()
	})
	return t
}

func openTerminal() (master, slave *os.File, err error) {
	master, err = os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			master.Close()
		}
	}()
	if err = unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		return nil, nil, err
	}
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		return nil, nil, err
	}
	slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	return master, slave, err
}

// Resize changes the size; the command is told.
func (t *Terminal) Resize(tb testing.TB, rows, columns int) {
	tb.Helper()
	size := unix.Winsize{Row: uint16(rows), Col: uint16(columns)}
	must.OK(tb, unix.IoctlSetWinsize(int(t.master.Fd()), unix.TIOCSWINSZ, &size))
}

// Type presses keys.
func (t *Terminal) Type(tb testing.TB, keys string) {
	tb.Helper()
	if _, err := t.master.WriteString(keys); err != nil {
		tb.Fatal(err)
	}
}

// Raw is all that was written, with what a terminal acts upon.
func (t *Terminal) Raw() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.out.String()
}

// Len is how much was written, to be given to Since.
func (t *Terminal) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.out.Len()
}

var escapes = regexp.MustCompile("\x1b\\[[?0-9;]*[a-zA-Z]|\x1b[=>]|\x1b\\][^\a]*\a")

// Since is what was written after some Len, as one reads it.
func (t *Terminal) Since(n int) string {
	return strings.ReplaceAll(escapes.ReplaceAllString(t.Raw()[n:], ""), "\r", "")
}

// ExitCode waits for the command's end.
func (t *Terminal) ExitCode(tb testing.TB, limit time.Duration) int {
	tb.Helper()
	select {
	case <-t.ended:
		return t.cmd.ProcessState.ExitCode()
	case <-time.After(limit):
		tb.Fatalf("the command in the terminal has not ended after %v:\n%q", limit, t.Raw())
		return -1
	}
}
