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

// WalkBox is a stub that is subreaper of its tree, without any container: walks of /proc find the tree.
//
// No number of walks that find nothing is proof: each takes longer than a process needs that forks its successor and goes,
// and chains of such processes slip through. Proof is the kernel's word to the stub, ECHILD, that it has no child left. The
// stub then raises a dead signal, an eventfd shared by all who kill. A stub that died without it proves nothing: its
// descendants are orphans that no walk finds any more.
type WalkBox struct {
	Pid        int
	Pidfd      *os.File
	DeadSignal *os.File
}

// NewDeadSignal makes the eventfd that a stub raises when it has seen its tree dead.
func NewDeadSignal() (*os.File, error) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("dead signal: %w", err)
	}
	return os.NewFile(uintptr(fd), "dead signal"), nil
}

// Ring makes an eventfd readable.
func Ring(fd int) error {
	one := [8]byte{1}
	_, err := unix.Write(fd, one[:])
	return err
}

// Order tells the stub to end its tree.
func (b *WalkBox) Order() error {
	return errors.Join(SignalHeld(b.Pidfd, unix.SIGTERM), SignalHeld(b.Pidfd, unix.SIGCONT))
}

// KillNow also kills the processes that a walk finds: the stub may be stopped or starved.
func (b *WalkBox) KillNow() error { return errors.Join(b.Order(), KillBelow(b.Pid)) }

// KillHarder implements Box.
func (b *WalkBox) KillHarder() error { return nil }

// Seal implements Box.
func (b *WalkBox) Seal() {} // as for InitBox

// Dead implements Box.
func (b *WalkBox) Dead() (bool, error) {
	gone, err := wire.Ready(b.Pidfd)
	if err != nil {
		return false, err
	}
	// Checked after the stub, which raises it before it ends.
	if raised, err := wire.Ready(b.DeadSignal); raised || err != nil {
		return raised, err
	}
	if gone {
		return false, fmt.Errorf("%w: stub %d died before it had seen its tree dead", ErrUnproved, b.Pid)
	}
	return false, nil
}

// Remove implements Box.
func (b *WalkBox) Remove() error { return nil }

// Wake implements Box.
func (b *WalkBox) Wake() (int, int16, time.Duration) {
	return int(b.DeadSignal.Fd()), unix.POLLIN, 2 * time.Millisecond
}

// Close implements Box.
func (b *WalkBox) Close() {
	_ = b.Pidfd.Close()
	_ = b.DeadSignal.Close()
}

// KillBelow kills every descendant of a process that one walk of /proc finds. Its children, which orphans become, are
// killed as soon as they are seen: some live only for milliseconds.
func KillBelow(root int) error {
	var all []Stat
	err := EachProcess(func(s Stat) error {
		all = append(all, s)
		if s.Ppid == root {
			return killExactly(s)
		}
		return nil
	})
	errs := []error{err}
	for _, s := range Descendants(all, root) {
		if s.Ppid != root {
			errs = append(errs, killExactly(s))
		}
	}
	return errors.Join(errs...)
}

// killExactly kills the process that was seen, and no other that has its pid now.
func killExactly(s Stat) error {
	if !s.Alive() {
		return nil
	}
	held, err := HoldProcess(s.Pid, s.Start)
	if err != nil || held == nil {
		return err
	}
	return errors.Join(SignalHeld(held, unix.SIGKILL), held.Close())
}

// Descendants picks out of a list of processes those below the roots. A process that is older than the one with its parent's pid is no
// child of that: the pid went to another one while the list was made.
func Descendants(all []Stat, roots ...int) []Stat {
	children := make(map[int][]Stat, len(all))
	since := make(map[int]uint64, len(all))
	for _, s := range all {
		children[s.Ppid] = append(children[s.Ppid], s)
		since[s.Pid] = s.Start
	}
	var below []Stat
	seen := make(map[int]bool)
	for _, root := range roots {
		seen[root] = true
	}
	for queue := slices.Clone(roots); len(queue) > 0; queue = queue[1:] {
		for _, s := range children[queue[0]] {
			if seen[s.Pid] || s.Start < since[queue[0]] {
				continue
			}
			seen[s.Pid] = true
			below = append(below, s)
			queue = append(queue, s.Pid)
		}
	}
	return below
}

// HostPid finds the pid, in our namespace, of the stub's child whose pid is inner in its own namespace.
func HostPid(stubPid, inner int) int {
	all, err := Processes()
	if err != nil {
		return 0
	}
	for _, s := range Descendants(all, stubPid) {
		status, err := os.ReadFile("/proc/" + strconv.Itoa(s.Pid) + "/status")
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(status)) {
			if pids, ok := strings.CutPrefix(line, "NSpid:"); ok {
				fields := strings.Fields(pids)
				if len(fields) > 0 && fields[len(fields)-1] == strconv.Itoa(inner) {
					return s.Pid
				}
			}
		}
	}
	return 0
}
