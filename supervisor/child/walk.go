package child

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// walkBody is a stub that is subreaper of its tree, without any container: walks of /proc find the tree.
//
// No number of walks that find nothing is proof: each takes longer than a process needs that forks its successor and goes,
// and chains of such processes slip through. Proof is the kernel's word to the stub, ECHILD, that it has no child left. The
// stub then raises a witness, an eventfd shared by all who kill. A stub that died without it proves nothing: its
// descendants are orphans that no walk finds any more.
type walkBody struct {
	pid     int
	pidfd   *os.File
	witness *os.File
}

func newWitness() (*os.File, error) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("witness: %w", err)
	}
	return os.NewFile(uintptr(fd), "witness"), nil
}

func raiseWitness(fd int) error {
	one := [8]byte{1}
	_, err := unix.Write(fd, one[:])
	return err
}

// order tells the stub to end its tree.
func (b *walkBody) order() error {
	return errors.Join(signalHeld(b.pidfd, unix.SIGTERM), signalHeld(b.pidfd, unix.SIGCONT))
}

// strike also kills the processes that a walk finds: the stub may be stopped or starved.
func (b *walkBody) strike() error { return errors.Join(b.order(), killBelow(b.pid)) }

func (b *walkBody) insist() error { return nil }

func (b *walkBody) seal() {} // as for initBody

func (b *walkBody) dead() (bool, error) {
	gone, err := ready(b.pidfd)
	if err != nil {
		return false, err
	}
	// Checked after the stub, which raises it before it ends.
	if raised, err := ready(b.witness); raised || err != nil {
		return raised, err
	}
	if gone {
		return false, fmt.Errorf("%w: stub %d died before it had seen its tree dead", ErrUnproved, b.pid)
	}
	return false, nil
}

func (b *walkBody) remove() error { return nil }

func (b *walkBody) wake() (int, int16, time.Duration) {
	return int(b.witness.Fd()), unix.POLLIN, 2 * time.Millisecond
}

func (b *walkBody) close() {
	_ = b.pidfd.Close()
	_ = b.witness.Close()
}

// killBelow kills every descendant of a process that one walk of /proc finds. Its children, which orphans become, are
// killed as soon as they are seen: some live only for milliseconds.
func killBelow(root int) error {
	var all []stat
	err := eachProcess(func(s stat) error {
		all = append(all, s)
		if s.ppid == root {
			return killExactly(s)
		}
		return nil
	})
	errs := []error{err}
	for _, s := range descendants(all, root) {
		if s.ppid != root {
			errs = append(errs, killExactly(s))
		}
	}
	return errors.Join(errs...)
}

// killExactly kills the process that was seen, and no other that has its pid now.
func killExactly(s stat) error {
	if !s.alive() {
		return nil
	}
	held, err := holdProcess(s.pid, s.start)
	if err != nil || held == nil {
		return err
	}
	return errors.Join(signalHeld(held, unix.SIGKILL), held.Close())
}

// descendants picks out of a list of processes those below root.
func descendants(all []stat, root int) []stat {
	children := make(map[int][]stat, len(all))
	for _, s := range all {
		children[s.ppid] = append(children[s.ppid], s)
	}
	var below []stat
	seen := map[int]bool{root: true}
	for queue := []int{root}; len(queue) > 0; queue = queue[1:] {
		for _, s := range children[queue[0]] {
			if seen[s.pid] {
				continue
			}
			seen[s.pid] = true
			below = append(below, s)
			queue = append(queue, s.pid)
		}
	}
	return below
}
