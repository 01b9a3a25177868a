package box

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// What a stub is found by.
const (
	StubMark       = "us-"   // begins its command name; ten hex digits follow: it has 15 bytes
	StubFor        = " for " // between its kind and its maker, which Maker looks for
	StubDeadSignal = 4       // its descriptor
)

// Stubs finds the living stubs of the tree. In another user namespace a user's number says nothing about whose they are.
func (id TreeID) Stubs() (found []Stat, err error) {
	if !strings.HasPrefix(id.Mark, StubMark) || len(id.Mark) < len(StubMark)+10 {
		return nil, fmt.Errorf("%w: no mark", ErrElsewhere)
	}
	if ns, err := UserNS(); err != nil || ns != id.UserNS {
		return nil, errors.Join(ErrElsewhere, err)
	}
	all, err := Processes()
	if err != nil {
		return nil, err
	}
	for _, s := range all {
		if s.Comm != id.Mark || !s.Alive() {
			continue
		}
		may, err := id.mayBeStub(s.Pid)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) || err == nil && !may {
			continue // it has ended, or is a stranger's
		}
		if err != nil {
			return nil, err
		}
		found = append(found, s)
	}
	return found, nil
}

// mayBeStub reports whether a process is of the supervisor's user, and as deep in PID namespaces as stubs are: root in a container is a
// stranger, too.
func (id TreeID) mayBeStub(pid int) (bool, error) {
	uid, err := realUser(pid)
	if err != nil {
		return false, err
	}
	pids, err := statusWords(pid, "NSpid")
	if err != nil {
		return false, err
	}
	return uid == id.User && (id.Kind == KindWalk && len(pids) == 1 || id.Kind == KindPidNS && len(pids) == 2 && pids[1] == "1"), nil
}

// noStub returns the state of a tree without a live stub.
func (id TreeID) noStub() (bool, error) {
	alive, err := id.supervised()
	if err != nil {
		return false, err
	}
	if alive {
		return false, fmt.Errorf("%w: its supervisor may still fork (%w)", ErrNotSeen, ErrUnproved)
	}
	if id.Kind == KindWalk {
		return false, fmt.Errorf("%w: a walked tree that has lost its stub cannot be found (%w)", ErrNotSeen, ErrUnproved)
	}
	return true, nil
}

// killStubs kills those that were found.
func (id TreeID) killStubs(ctx context.Context, found []Stat) error {
	seen := len(found) > 0
	for _, s := range found {
		b, err := id.Hold(s)
		if errors.Is(err, fs.ErrNotExist) {
			seen = false // P2: it took its word with it
			continue
		}
		if err != nil {
			return err
		}
		err = KillUntilDead(ctx, b, true)
		b.Close()
		if err != nil {
			return err
		}
	}
	left, err := id.Stubs()
	if err != nil {
		return err
	}
	if len(left) > 0 {
		return fmt.Errorf("%w: new stubs appear", ErrUnproved)
	}
	dead, err := id.noStub()
	if !dead && id.Kind == KindWalk && seen {
		if alive, err := id.supervised(); err == nil && !alive {
			return nil // its stubs have seen the tree dead
		}
	}
	return err
}

// Hold opens a found stub.
func (id TreeID) Hold(s Stat) (Box, error) {
	held, err := HoldProcess(s.Pid, s.Start)
	if err == nil && held == nil {
		err = fs.ErrNotExist
	}
	if err != nil {
		return nil, err
	}
	if id.Kind == KindPidNS {
		return &InitBox{Pidfd: held}, nil
	}
	// The stub's own: only what it raises itself is proof.
	fd, err := unix.PidfdGetfd(int(held.Fd()), StubDeadSignal, 0)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%w: dead signal of stub %d: %w", ErrUnproved, s.Pid, err), held.Close())
	}
	deadSignal := os.NewFile(uintptr(fd), "dead signal")
	if what, err := os.Readlink(pathOf(fd)); what != "anon_inode:[eventfd]" { // any other file may never answer
		return nil, errors.Join(fmt.Errorf("%w: the dead signal of stub %d is %q", ErrUnproved, s.Pid, what), err, deadSignal.Close(),
			held.Close())
	}
	return &WalkBox{Pid: s.Pid, Pidfd: held, DeadSignal: deadSignal}, nil
}
