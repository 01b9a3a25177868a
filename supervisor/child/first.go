package child

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// A program may leave its cgroup: root can, and so can who shares a delegated one with us. Whatever the cgroup says, the process
// that we forked ourselves is dead when its pidfd says so. Supervisor and guardians hold it before it runs the program. Its
// run's cgroup names it as well, for those who come later: a sweep, or a kill by the tree's id.

const (
	firstAttr = "user.understudy.first" // of a run's cgroup
	runPrefix = "run-"
)

// first is the process that a run was started with.
type first struct {
	pid   int
	start uint64
	initBody
}

// began is a run and its first process, wherever that has gone.
type began struct {
	*run
	first *first
}

func (b *began) strike() error { return errors.Join(b.run.strike(), b.first.strike()) }

func (b *began) dead() (bool, error) {
	looks := b.looks.Load()
	if dead, err := b.run.dead(); !dead || err != nil {
		return false, err
	}
	dead, err := b.first.dead()
	if !dead {
		b.looks.Store(looks + 1)
	}
	return dead, err
}

func (b *began) close() {
	b.first.close()
	b.run.close()
}

// holdFirst opens a run's first process; nil: it is gone.
func holdFirst(pid int, start uint64) (*first, error) {
	held, err := holdProcess(pid, start)
	if err != nil || held == nil {
		return nil, err
	}
	return &first{pid, start, initBody{held}}, nil
}

// name writes the run's first process down.
func (r *run) name(pid int, start uint64) error {
	if err := unix.Setxattr(r.path, firstAttr, fmt.Appendf(nil, "%d %d", pid, start), 0); err != nil {
		return fmt.Errorf("write its first process down at cgroup %s: %w", r.path, err)
	}
	return nil
}

// named opens the first process of the run at a path; nil: it has ended, or it never ran anything.
func named(path string) (*os.File, error) {
	var buf [64]byte
	n, err := unix.Lgetxattr(path, firstAttr, buf[:])
	if errors.Is(err, unix.EACCES) && unix.Chmod(path, 0o700) == nil {
		n, err = unix.Lgetxattr(path, firstAttr, buf[:])
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
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOENT) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("pidfd of %d: %w", pid, err)
	}
	held := os.NewFile(uintptr(fd), "pidfd")
	s, err := statOf(pid)
	switch {
	case err == nil && s.start == start && !readable(fd):
		return held, nil
	case errors.Is(err, os.ErrNotExist) && !readable(fd): // P2: a process that is hidden from us is not taken for dead
		return nil, errors.Join(fmt.Errorf("%w: %w", ErrUnproved, err), held.Close())
	case errors.Is(err, os.ErrNotExist):
		err = nil
	}
	return nil, errors.Join(err, held.Close())
}

// firsts visits the first processes that live of the runs in it, or of itself if it is one.
func (l *leaf) firsts(visit func(run string, pidfd *os.File) error) error {
	l.regain()
	paths := []string{l.path}
	if !l.single {
		entries, err := os.ReadDir(l.path)
		if err != nil && !l.removed() {
			return fmt.Errorf("look for runs: %w", err)
		}
		paths = nil
		for _, entry := range entries {
			if entry.IsDir() && strings.HasPrefix(entry.Name(), runPrefix) {
				paths = append(paths, filepath.Join(l.path, entry.Name()))
			}
		}
	}
	var errs []error
	for _, path := range paths {
		held, err := named(path)
		if err == nil && held != nil {
			err = errors.Join(visit(path, held), held.Close())
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// regain takes back the rights to its own cgroups, where a program of the same user has taken them away.
func (l *leaf) regain() {
	for _, path := range []string{filepath.Dir(l.path), l.path} {
		if unix.Access(path, unix.R_OK|unix.W_OK|unix.X_OK) == unix.EACCES {
			_ = unix.Chmod(path, 0o700) // what fails for it tells
		}
	}
}

func (l *leaf) strikeFirsts() error {
	return l.firsts(func(_ string, pidfd *os.File) error { return signalHeld(pidfd, unix.SIGKILL) })
}

func (l *leaf) firstsDead() (bool, error) {
	dead := true
	err := l.firsts(func(string, *os.File) error {
		dead = false
		return nil
	})
	return dead && err == nil, err
}

// tellStrays says which programs are not where they were started, of a part or of all: they are killed wherever they are, but what
// they have forked there is not.
func (t *Tree) tellStrays(of *part) {
	type stray struct {
		pid int
		at  string
	}
	var all []stray
	t.mu.Lock()
	for _, p := range t.parts {
		if p.first == nil || p.told || of != nil && p != of {
			continue
		}
		at, err := os.ReadFile("/proc/" + strconv.Itoa(p.first.pid) + "/cgroup")
		if gone, looked := p.first.dead(); err == nil && !gone && looked == nil && !inRun(string(at), []string{p.path}) {
			p.told = true
			all = append(all, stray{p.first.pid, cgroupOf(string(at))})
		}
	}
	t.mu.Unlock()
	for _, s := range all {
		t.guard.cfg.Logger.Warn("a program has moved itself to another cgroup: it is killed there, but not what it has forked there",
			"tree", t.id.Name, "pid", s.pid, "cgroup", s.at)
	}
}
