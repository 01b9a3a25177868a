package box

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/sys/unix"
)

// Maker is the written identity of a supervisor, by which a later one on the same machine can find all trees that it made.
type Maker struct {
	TreeID // as of any of its trees; Path and Inode are those of the cgroup in which it makes them
}

// Maker is this process as the maker of its trees.
func (c Container) Maker() (Maker, error) {
	id, err := c.NewID("", nil)
	if err != nil {
		return Maker{}, err
	}
	id.Mark = ""
	m := Maker{TreeID: id}
	if m.Kind == KindCgroup {
		m.Path = c.Base
		m.Inode, err = InodeOf(m.Path)
	}
	return m, err
}

// ErrSupervised says that the supervisor lives.
var ErrSupervised = errors.New("that supervisor is running")

// EndAll ends all trees of a supervisor that is gone. nil says that they are proved dead, each as KillByID proves it: nobody is left who
// could make another one. A walked tree that has lost its supervisor and its guardians is never proved dead.
func (m Maker) EndAll(ctx context.Context) error {
	if err := m.here(); err != nil {
		return err
	}
	if alive, err := m.supervised(); alive || err != nil {
		return errors.Join(ErrSupervised, err)
	}
	switch m.Kind {
	case KindCgroup:
		return m.endLeaves(ctx)
	case KindPidNS:
		return m.awaitStubs(ctx)
	}
	return fmt.Errorf("%w: a walked tree that has lost its supervisor cannot be found", ErrUnproved)
}

func (m Maker) endLeaves(ctx context.Context) error {
	base, inode, err := OpenBase(filepath.Join(m.Path, "tree"))
	if err != nil {
		return errors.Join(ErrElsewhere, err)
	}
	_ = unix.Close(base)
	if inode != m.Inode || m.Inode == 0 { // systemd may have removed it, with a tree's, though a process has left that
		return ErrElsewhere
	}
	all, err := orphans(m.Path)
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(o Orphan) bool {
		return !strings.Contains(filepath.Base(o.Path), "."+MakerName(m.PidNS, m.Pid, m.StartTime)+".")
	})
	left := EndAll(ctx, all, hclog.NewNullLogger())
	if len(left) > 0 {
		return &AliveError{left[0].Leftover(), ErrUnproved}
	}
	return nil
}

// awaitStubs waits until none of its stubs is left: the kernel kills each with its supervisor, and all that is in its namespace before it.
func (m Maker) awaitStubs(ctx context.Context) error {
	for {
		one, err := m.Stub()
		if err != nil || one == 0 {
			return err
		}
		again := time.NewTimer(5 * time.Millisecond)
		select {
		case <-again.C:
		case <-ctx.Done():
			again.Stop()
			l := Leftover{Tree: "that supervisor's"}
			l.Look(one)
			return &AliveError{l, ErrUnproved}
		}
	}
}

// Stub finds a stub that may be one of this supervisor's: it says for whom it was made, unless it is ending. 0: there is none.
func (m Maker) Stub() (pid int, err error) {
	if ns, err := UserNS(); err != nil || ns != m.UserNS {
		return 0, errors.Join(ErrElsewhere, err)
	}
	all, err := Processes()
	if err != nil {
		return 0, err
	}
	for _, s := range all {
		if !strings.HasPrefix(s.Comm, StubMark) || !s.Alive() {
			continue
		}
		may, err := m.mayBeStub(s.Pid)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) || err == nil && !may {
			continue // it has ended, or is a stranger's
		}
		if err != nil {
			return 0, err
		}
		line, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(s.Pid), "cmdline")) // nothing of one that is ending
		_, kind, _ := strings.Cut(string(line), "\x00")
		_, by, says := strings.Cut(strings.TrimRight(kind, "\x00"), StubFor)
		if !says || by == MakerName(m.PidNS, m.Pid, m.StartTime) {
			return s.Pid, nil
		}
	}
	return 0, nil
}
