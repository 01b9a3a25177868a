package box

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"understudy/supervisor/child/wire"
)

// A program may leave its cgroup: root can, and so can a user that shares a delegated one with us. Whatever the cgroup says, the
// process that we forked ourselves is dead when its pidfd says so. Supervisor and guardians hold the pidfd before the process runs the
// program. Its run's cgroup also names it, for later processes: a sweep, or a kill by the tree's id.

// What a run's cgroup has.
const (
	FirstAttr = "user.understudy.first" // of a run's cgroup
	RunPrefix = "run-"                  // begins its name
)

// First is the first process of a run.
type First struct {
	Pid   int
	Start uint64
	InitBox
}

// Began is a run and its first process, in whichever cgroup that is.
type Began struct {
	*RunCgroup
	First *First
}

// Order kills the process that we hold first: that need not wait for the kernel's lock on cgroups.
func (b *Began) Order() error { return errors.Join(b.First.Order(), b.RunCgroup.Order()) }

// KillNow implements Box.
func (b *Began) KillNow() error { return b.Order() } // its run's cgroup would find no other process

// Dead implements Box: both have to be.
func (b *Began) Dead() (bool, error) {
	looks := b.looks.Load()
	if dead, err := b.RunCgroup.Dead(); !dead || err != nil {
		return false, err
	}
	dead, err := b.First.Dead()
	if !dead {
		b.looks.Store(looks + 1)
	}
	return dead, err
}

// Close implements Box.
func (b *Began) Close() {
	b.First.Close()
	b.RunCgroup.Close()
}

// HoldFirst opens a run's first process; nil: it is gone.
func HoldFirst(pid int, start uint64) (*First, error) {
	held, err := HoldProcess(pid, start)
	if err != nil || held == nil {
		return nil, err
	}
	return &First{pid, start, InitBox{held}}, nil
}

// Name writes the run's first process down.
func (r *RunCgroup) Name(one *First) error {
	said := fmt.Appendf(nil, "%d %d", one.Pid, one.Start)
	err := unix.Fsetxattr(r.Dir, FirstAttr, said, 0)
	if errors.Is(err, unix.EACCES) {
		r.regain()
		err = unix.Fsetxattr(r.Dir, FirstAttr, said, 0)
	}
	if err != nil {
		return fmt.Errorf("write its first process down at cgroup %s: %w", r.Path, err)
	}
	return nil
}

// named opens the first process of a run; nil: it has ended, or it never ran a program.
func named(dir int, path string) (*First, error) {
	var buf [64]byte
	n, err := unix.Fgetxattr(dir, FirstAttr, buf[:])
	if errors.Is(err, unix.EACCES) && unix.Fchmod(dir, 0o700) == nil {
		n, err = unix.Fgetxattr(dir, FirstAttr, buf[:])
	}
	if errors.Is(err, unix.ENODATA) || errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENODEV) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the first process of cgroup %s: %w", path, err)
	}
	var pid int
	var start uint64
	if _, err := fmt.Sscanf(string(buf[:n]), "%d %d", &pid, &start); err != nil {
		return nil, fmt.Errorf("read the first process of cgroup %s: %q: %w", path, buf[:n], err)
	}
	one, err := holdNamed(pid, start)
	if err == nil && one != nil {
		err = mayName(dir, pid)
		if err != nil {
			one.Close()
			return nil, fmt.Errorf("read the first process of cgroup %s: %w", path, err)
		}
	}
	return one, err
}

// mayName refuses the word of another user, to whom the cgroup belongs, about a process that is not theirs to kill.
func mayName(dir, pid int) error {
	var st unix.Stat_t
	if err := unix.Fstat(dir, &st); err != nil {
		return fmt.Errorf("owner: %w", err)
	}
	if st.Uid == 0 || int(st.Uid) == os.Geteuid() {
		return nil
	}
	uid, err := realUser(pid)
	if err == nil && uid != st.Uid {
		err = fmt.Errorf("it belongs to user %d, and process %d to user %d", st.Uid, pid, uid)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnproved, err)
	}
	return nil
}

// realUser is who started a process: not root, where that one has become root by a program's setuid bit.
func realUser(pid int) (uint32, error) {
	users, err := statusWords(pid, "Uid")
	if err != nil {
		return 0, err
	}
	uid, err := strconv.ParseUint(users[0], 10, 32)
	return uint32(uid), err
}

// statusWords are those of one field of a process's status, at least one.
func statusWords(pid int, field string) ([]string, error) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return nil, fmt.Errorf("%s of process %d: %w", field, pid, err)
	}
	words := strings.Fields(StatusField(text, field))
	if len(words) == 0 {
		return nil, fmt.Errorf("%s of process %d: none is told", field, pid)
	}
	return words, nil
}

// holdNamed opens a process that was written down; nil: it is dead.
func holdNamed(pid int, start uint64) (*First, error) {
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOENT) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("pidfd of %d: %w", pid, err)
	}
	held := os.NewFile(uintptr(fd), "pidfd")
	s, err := StatOf(pid)
	switch {
	case err == nil && s.Start == start && !wire.Readable(fd):
		return &First{pid, start, InitBox{held}}, nil
	case errors.Is(err, os.ErrNotExist) && !wire.Readable(fd): // P2: a process that is hidden from us need not be dead
		return nil, errors.Join(fmt.Errorf("%w: %w", ErrUnproved, err), held.Close())
	case errors.Is(err, os.ErrNotExist):
		err = nil
	}
	return nil, errors.Join(err, held.Close())
}

// firsts visits the live first processes of the runs in it, or its own if it is a run.
func (l *TreeCgroup) firsts(visit func(*First) error) error {
	l.regain()
	if l.single {
		return visitFirst(l.Dir, l.Path, visit)
	}
	entries, err := entriesOf(l.Dir)
	if err != nil && !l.Removed() {
		return fmt.Errorf("look for runs: %w", err)
	}
	var errs []error
	for _, entry := range entries {
		if !entry.IsDir() || !strings.HasPrefix(entry.Name(), RunPrefix) {
			continue
		}
		dir, err := openBelow(l.Dir, entry.Name(), dirFlags, 0o700)
		if err != nil {
			errs = append(errs, ignoring(err, unix.ENOENT, unix.ENODEV))
			continue
		}
		errs = append(errs, visitFirst(dir, filepath.Join(l.Path, entry.Name()), visit))
		_ = unix.Close(dir)
	}
	return errors.Join(errs...)
}

func visitFirst(dir int, path string, visit func(*First) error) error {
	one, err := named(dir, path)
	if err != nil || one == nil {
		return err
	}
	defer one.Close()
	return visit(one)
}

func (l *TreeCgroup) firstsDead() (bool, error) {
	dead := true
	err := l.firsts(func(*First) error {
		dead = false
		return nil
	})
	return dead && err == nil, err
}
