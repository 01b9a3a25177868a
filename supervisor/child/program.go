package child

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// program is a Spec on its way to the process that executes it.
type program struct {
	Path string   `json:"path"`
	Argv []string `json:"argv"`
	Dir  string   `json:"dir,omitempty"`
	Env  []string `json:"env"`
	Settings
}

// stdin is closed by the caller after the fork.
func (s Spec) stdin() (file *os.File, closeIt func(), err error) {
	if s.Stdin != nil {
		return s.Stdin, func() {}, nil
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	return null, func() { _ = null.Close() }, err
}

func (s Spec) stdout() *os.File {
	if s.Stdout != nil {
		return s.Stdout
	}
	return os.Stdout
}

func (s Spec) stderr() *os.File {
	if s.Stderr != nil {
		return s.Stderr
	}
	return os.Stderr
}

// directory is the program's working directory, whatever its stub's is: by default the supervisor's, or, for another user, who
// may not be able to enter that, a service's usual one.
func (s Spec) directory() string {
	if s.Dir == "" && s.Credential != nil {
		return "/"
	}
	if here, err := os.Getwd(); s.Dir == "" && err == nil {
		return here
	}
	return s.Dir
}

// environment is the program's environment, with every name once.
func (s Spec) environment() []string {
	var kept []string
	seen := make(map[string]bool, len(s.Env))
	for _, entry := range slices.Backward(s.Env) {
		if name, _, ok := strings.Cut(entry, "="); ok && !seen[name] {
			seen[name] = true
			kept = append(kept, entry)
		}
	}
	slices.Reverse(kept)
	return kept
}

// resolve finds the program as a shell would: along the PATH of the environment it is going to have.
func (s Spec) resolve() (*program, error) {
	if len(s.Argv) == 0 || s.Argv[0] == "" {
		return nil, fmt.Errorf("%w: no command", ErrNotFound)
	}
	prog := &program{Path: s.Argv[0], Argv: s.Argv, Dir: s.directory(), Env: s.environment(), Settings: filesAsStarted(s.Settings)}
	if err := prog.check(); err != nil {
		return nil, err
	}
	if strings.Contains(prog.Path, "/") {
		if s.Dir == "" && prog.Dir != "" { // relative to where the supervisor is
			if at, err := filepath.Abs(prog.Path); err == nil {
				prog.Path = at
			}
		}
		at := prog.Path
		if !filepath.IsAbs(at) {
			at = filepath.Join(s.Dir, at)
		}
		return prog, executable(at)
	}
	path := os.Getenv("PATH")
	for _, entry := range prog.Env {
		if value, ok := strings.CutPrefix(entry, "PATH="); ok {
			path = value
		}
	}
	fault := fmt.Errorf("%w: %s is not in PATH", ErrNotFound, prog.Path)
	for _, dir := range filepath.SplitList(path) {
		at := filepath.Join(dir, s.Argv[0])
		err := executable(at)
		if err == nil {
			prog.Path = at
			return prog, nil
		}
		if errors.Is(err, ErrNotExecutable) {
			fault = err
		}
	}
	return nil, fault
}

func executable(at string) error {
	info, err := os.Stat(at)
	if err == nil && info.IsDir() {
		return fmt.Errorf("%w: %s is a directory", ErrNotExecutable, at)
	}
	if err == nil && info.Mode()&0o111 == 0 {
		return fmt.Errorf("%w: %s", ErrNotExecutable, at)
	}
	return startFault(err)
}

// startFault turns the kernel's reason for not starting a program into one of our errors.
func startFault(err error) error {
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

const adviceOnTasks = "a limit of tasks is reached: TasksMax= of the unit, pids.max of its cgroup or container, limits.nproc or ulimit -u of its user"

// write puts the program into a file without a name, whose descriptor can be passed on; it may be larger than any packet.
func (prog *program) write() (*os.File, error) {
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

// readProgram is the reverse of write. It does not move the file's offset, which others share.
func readProgram(order *os.File) (*program, error) {
	if order == nil {
		return nil, errors.New("an order without a program")
	}
	prog := new(program)
	if err := json.NewDecoder(io.NewSectionReader(order, 0, 1<<40)).Decode(prog); err != nil {
		return nil, fmt.Errorf("decode program: %w", err)
	}
	return prog, nil
}
