package reexec

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"understudy/supervisor/child/box"
	"understudy/supervisor/child/inside"
	"understudy/supervisor/child/wire"
)

// handoverEnv is the variable by which an image of this process finds the previous one's state: the number of a descriptor, a dot, and
// the time. The state is in a file without a name; no secret of it is ever in the environment.
const handoverEnv = "UNDERSTUDY_HANDOVER"

const seals = unix.F_SEAL_WRITE | unix.F_SEAL_GROW | unix.F_SEAL_SHRINK | unix.F_SEAL_SEAL

// handedOver is the state for the next image of this very process.
type handedOver struct {
	Pid   int             `json:"pid"`
	Start uint64          `json:"start"`
	State json.RawMessage `json:"state"`
}

// Become execs the binary at path in this process, and leaves state to it. Call it on the main thread, while nobody forks; it returns only
// on failure.
func Become(path string, argv, env []string, state json.RawMessage) error {
	own, err := box.StatOf(os.Getpid())
	if err != nil {
		return err
	}
	raw, err := json.Marshal(handedOver{own.Pid, own.Start, state})
	if err != nil {
		return fmt.Errorf("encode the state for the next version: %w", err)
	}
	fd, err := unix.MemfdCreate("handover", unix.MFD_ALLOW_SEALING) // open over the exec
	if err != nil {
		return fmt.Errorf("file for the state for the next version: %w", err)
	}
	defer unix.Close(fd)
	for left := raw; len(left) > 0; {
		n, err := unix.Write(fd, left)
		if err != nil {
			return fmt.Errorf("write the state for the next version: %w", err)
		}
		left = left[n:]
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals); err != nil {
		return fmt.Errorf("seal the state for the next version: %w", err)
	}
	entry := handoverEnv + "=" + strconv.Itoa(fd) + "." + strconv.FormatInt(int64(wire.Now()), 10)
	inside.LowerOpenFiles()
	box.Expose()
	err = os.NewSyscallError("exec "+path, syscall.Exec(path, argv, append(WithoutState(env), entry)))
	box.Spare(box.Spared)
	return errors.Join(err, inside.RaiseOpenFiles())
}

// WithoutState is an environment that leads to no state.
func WithoutState(env []string) []string {
	kept := make([]string, 0, len(env)+1)
	for _, entry := range env {
		if !strings.HasPrefix(entry, handoverEnv+"=") {
			kept = append(kept, entry)
		}
	}
	return kept
}

// TakeState returns the state that the previous image of this process has left, nil if there was none. It can be read once. An error says
// that there was one: then this process has to end, which its guardians see.
func TakeState() (json.RawMessage, error) {
	entry, ok := os.LookupEnv(handoverEnv)
	if !ok {
		return nil, nil
	}
	_ = os.Unsetenv(handoverEnv)
	state, err := readHandover(entry)
	if err != nil {
		return nil, fmt.Errorf("read the state of the previous version: %w", err)
	}
	return state, nil
}

func readHandover(entry string) (json.RawMessage, error) {
	number, _, _ := strings.Cut(entry, ".")
	fd, err := strconv.Atoi(number)
	if err != nil || fd < 3 {
		return nil, errors.New("it names no descriptor")
	}
	if has, err := unix.FcntlInt(uintptr(fd), unix.F_GET_SEALS, 0); err != nil || has&seals != seals {
		return nil, errors.New("its descriptor is not the one that was handed over")
	}
	file := TakeFile(fd, "handover")
	defer file.Close()
	raw, err := io.ReadAll(io.NewSectionReader(file, 0, 1<<30))
	if err != nil {
		return nil, err
	}
	var left handedOver
	if err := json.Unmarshal(raw, &left); err != nil {
		return nil, err
	}
	own, err := box.StatOf(os.Getpid())
	if err == nil && (left.Pid != own.Pid || left.Start != own.Start) {
		err = fmt.Errorf("it was handed over to process %d", left.Pid)
	}
	return left.State, err
}

// LeaveFile duplicates a file's descriptor to one that stays open over an exec, where the next image finds it by TakeFile. Call it only
// while nobody forks.
func LeaveFile(f *os.File) (left int, err error) {
	err = wire.Using(f, func(fd int) (err error) {
		left, err = unix.FcntlInt(uintptr(fd), unix.F_DUPFD, 3)
		return err
	})
	return left, err
}

// TakeFile returns a file that the previous image has left. Its descriptor closes on the next exec.
func TakeFile(fd int, name string) *os.File {
	unix.CloseOnExec(fd)
	return os.NewFile(uintptr(fd), name)
}
