package box

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"understudy/supervisor/child/wire"
)

// Stat is one process's state in /proc.
type Stat struct {
	Pid, Ppid, threads int
	State              byte
	Comm               string
	Start              uint64 // in clock ticks since boot: with the pid it names a process for good
}

// Alive is false for a process that is only waiting to be reaped: it has no memory and no descriptors any more.
// A thread that ended first leaves the same state behind while its siblings run, so those are counted too.
func (s Stat) Alive() bool { return s.State != 'Z' && s.State != 'X' || s.threads > 1 }

// StatOf reads a process's state.
func StatOf(pid int) (Stat, error) {
	// Three system calls and no more: a walk of /proc races with forks.
	fd, err := unix.Open("/proc/"+strconv.Itoa(pid)+"/stat", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	var n int
	var buf [1024]byte
	if err == nil {
		n, err = unix.Read(fd, buf[:])
		_ = unix.Close(fd)
	}
	if err == unix.ESRCH {
		err = os.ErrNotExist // it ended while we read
	}
	if err != nil {
		return Stat{}, fmt.Errorf("process %d: %w", pid, err)
	}
	return ParseStat(string(buf[:n]))
}

// Hangs reports whether a thread of this process is where no signal ends it, as far as that is known. It may be for a moment alone.
func Hangs() bool {
	threads, err := os.ReadDir("/proc/self/task")
	for _, thread := range threads {
		line, gone := os.ReadFile("/proc/self/task/" + thread.Name() + "/stat")
		if s, err := ParseStat(string(line)); gone == nil && (err != nil || s.State == 'D') {
			return true
		}
	}
	return err != nil
}

// ParseStat reads one line of /proc/<pid>/stat. The command may hold blanks and parentheses.
func ParseStat(line string) (Stat, error) {
	open, shut := strings.IndexByte(line, '('), strings.LastIndexByte(line, ')')
	if open < 1 || shut < open {
		return Stat{}, fmt.Errorf("stat line without a command: %.80q", line)
	}
	fields := strings.Fields(line[shut+1:])
	if len(fields) < 20 || len(fields[0]) != 1 || fields[0] < "A" || fields[0] > "z" {
		return Stat{}, fmt.Errorf("stat line too short: %.80q", line)
	}
	s := Stat{Comm: line[open+1 : shut], State: fields[0][0]}
	var errs [4]error
	s.Pid, errs[0] = strconv.Atoi(strings.TrimSpace(line[:open]))
	s.Ppid, errs[1] = strconv.Atoi(fields[1])
	s.threads, errs[2] = strconv.Atoi(fields[17])
	s.Start, errs[3] = strconv.ParseUint(fields[19], 10, 64)
	return s, errors.Join(errs[:]...)
}

// Processes lists all processes that /proc shows. One that ends meanwhile is left out.
func Processes() ([]Stat, error) {
	var all []Stat
	err := EachProcess(func(s Stat) error {
		all = append(all, s)
		return nil
	})
	return all, err
}

// EachProcess visits all processes, those with the highest pids, which as a rule are the newest, first.
func EachProcess(visit func(Stat) error) error {
	dir, err := os.Open("/proc")
	if err != nil {
		return err
	}
	names, err := dir.Readdirnames(-1)
	if err := errors.Join(err, dir.Close()); err != nil {
		return fmt.Errorf("list /proc: %w", err)
	}
	pids := make([]int, 0, len(names))
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			pids = append(pids, pid)
		}
	}
	slices.Sort(pids)
	for _, pid := range slices.Backward(pids) {
		s, err := StatOf(pid)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err == nil {
			err = visit(s)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// HoldProcess opens the process that had this pid and start time, and no other: nil when that one is gone.
func HoldProcess(pid int, start uint64) (*os.File, error) {
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) || errors.Is(err, unix.EINVAL) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("pidfd of %d: %w", pid, err)
	}
	held := os.NewFile(uintptr(fd), "pidfd")
	// Checked after the open: if the pid had gone to another process before, the start time would differ.
	s, err := StatOf(pid)
	if err == nil && s.Start == start {
		return held, nil
	}
	_ = held.Close()
	if err == nil || errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	return nil, err
}

// SignalHeld sends a signal to a held process. One that is gone already is no error.
func SignalHeld(pidfd *os.File, sig unix.Signal) error {
	return wire.Using(pidfd, func(fd int) error {
		err := unix.PidfdSendSignal(fd, sig, nil, 0)
		if err == unix.ESRCH {
			return nil
		}
		return err
	})
}

// InitBox is the init of a PID namespace: everything in the namespace dies with it.
type InitBox struct{ Pidfd *os.File }

// Order implements Box.
func (b *InitBox) Order() error { return SignalHeld(b.Pidfd, unix.SIGKILL) }

// KillNow implements Box.
func (b *InitBox) KillNow() error { return b.Order() }

// KillHarder implements Box.
func (b *InitBox) KillHarder() error { return nil }

// Seal implements Box.
func (b *InitBox) Seal() {} // no process comes late: the guardians know each stub before it may start one

// Dead is proof: an init is reported dead only after the kernel has killed and reaped all the others.
func (b *InitBox) Dead() (bool, error) { return wire.Ready(b.Pidfd) }

// Remove implements Box.
func (b *InitBox) Remove() error { return nil } // nobody can fork into a namespace whose init is dead

// Wake implements Box.
func (b *InitBox) Wake() (int, int16, time.Duration) {
	return int(b.Pidfd.Fd()), unix.POLLIN, 20 * time.Millisecond
}

// Close implements Box.
func (b *InitBox) Close() { _ = b.Pidfd.Close() }
