package inside

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"

	"understudy/supervisor/child/wire"
	"understudy/supervisor/guard"
)

// Why a program could not be started, for errors.Is.
var (
	ErrNotFound      = errors.New("program not found")
	ErrNotExecutable = errors.New("program not executable")
)

// Program is what a process becomes.
type Program struct {
	Path string   `json:"path"`
	Argv []string `json:"argv"`
	Dir  string   `json:"dir,omitempty"`
	Env  []string `json:"env"`
	Settings
}

// File puts the program into a file without a name, whose descriptor can be passed on to a stub; it may be larger than any packet.
func (prog *Program) File() (*os.File, error) {
	raw, err := json.Marshal(prog)
	if err != nil {
		return nil, fmt.Errorf("encode program: %w", err)
	}
	fd, err := unix.MemfdCreate("program", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("file for the program: %w", err)
	}
	order := os.NewFile(uintptr(fd), "program")
	if _, err := order.Write(raw); err != nil {
		return nil, errors.Join(fmt.Errorf("file for the program: %w", err), order.Close())
	}
	return order, nil
}

// readProgram is the reverse of File. It does not move the file's offset, which others share.
func readProgram(order *os.File) (*Program, error) {
	if order == nil {
		return nil, errors.New("an order without a program")
	}
	prog := new(Program)
	if err := json.NewDecoder(io.NewSectionReader(order, 0, 1<<40)).Decode(prog); err != nil {
		return nil, fmt.Errorf("decode program: %w", err)
	}
	return prog, nil
}

// StartFault turns the kernel's reason for not starting a program into one of our errors.
func StartFault(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ENOTDIR):
		return fmt.Errorf("%w: %w", ErrNotFound, err)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, unix.ENOEXEC), errors.Is(err, unix.EISDIR), errors.Is(err, unix.ELIBBAD):
		return fmt.Errorf("%w: %w", ErrNotExecutable, err)
	case errors.Is(err, unix.EAGAIN):
		return fmt.Errorf("%w: %s", err, adviceOnTasks)
	}
	return err
}

const adviceOnTasks = "a limit of tasks is reached: TasksMax= of the unit, pids.max of its cgroup or container, " +
	"limits.nproc or ulimit -u of its user"

// Fault explains a copy's or a stub's message.
func (prog *Program) Fault(m *guard.Message) error {
	errno := unix.Errno(m.Number)
	steps, _ := prog.steps(nil)
	switch {
	case m.Op != wire.OpFailed:
		return ErrKilledEarly
	case m.Index > 0 && m.Index == len(steps):
		as := ""
		if c := prog.Credential; c != nil {
			as = fmt.Sprintf(" as user %s (uid %d)", c.Name, c.UID)
		}
		return StartFault(fmt.Errorf("%s%s: %w", steps[m.Index-1].what, as, errno))
	case m.Index > 0 && m.Index < len(steps):
		s := steps[m.Index-1]
		if s.advice == "" {
			return fmt.Errorf("%w: %s: %w", ErrSettings, s.what, errno)
		}
		return fmt.Errorf("%w: %s: %w: %s", ErrSettings, s.what, errno, s.advice)
	case m.Number > 0:
		return StartFault(&reported{m.Why, errno})
	}
	return errors.New(m.Why)
}

// reported is an error of another process.
type reported struct {
	why   string
	errno unix.Errno
}

func (r *reported) Error() string { return r.why }

func (r *reported) Unwrap() error { return r.errno }

func errnoOf(err error) unix.Errno {
	var errno unix.Errno
	if err != nil && !errors.As(err, &errno) {
		return unix.EIO
	}
	return errno
}

// ExitCode is a process's exit code, or 128+N when signal N ended it.
func ExitCode(ws syscall.WaitStatus) int {
	if ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return ws.ExitStatus()
}
