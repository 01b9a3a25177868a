package child

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"understudy/supervisor/child/box"
	"understudy/supervisor/child/reexec"
	"understudy/supervisor/child/wire"
	"understudy/supervisor/guard"
)

// A supervisor may become another version of itself by an exec: the process stays the same, and so do its children. The death
// signal of a child is bound to the thread that forked it, and an exec ends all threads but the one that calls it, which is the
// main thread from then on. So all forks and execs have to happen on the main thread.

// ErrBusy says that an action is under way that cannot be handed over in the middle. It ends by itself.
var ErrBusy = guard.ErrBusy

// carried is the state of a Guard that survives an exec. It has descriptors by their numbers, which an exec does not change. A key must
// mean the same in all versions: readers ignore unknown ones, and a key that they must not ignore needs another version of the whole.
type carried struct {
	Container box.Container      `json:"container"`
	Seq       uint64             `json:"seq"`
	Trees     uint64             `json:"trees"`
	Guardians [2]carriedGuardian `json:"guardians"`
	Lease     carriedLease       `json:"lease"`            // the session's, which has the lowest number
	Others    []carriedLease     `json:"others,omitempty"` // of copies
	Watchdog  *carriedWatchdog   `json:"watchdog,omitempty"`
}

type carriedGuardian struct {
	Pid    int    `json:"pid"`
	Start  uint64 `json:"start"`
	Socket int    `json:"socket"`
	Acked  uint64 `json:"acked"`
}

type carriedLease struct {
	Number   uint64        `json:"number"`
	Ticket   []byte        `json:"ticket"`
	Deadline time.Duration `json:"deadline"`
	Trees    []carriedTree `json:"trees"`
}

type carriedTree struct {
	Number  uint64        `json:"number"`
	ID      box.TreeID    `json:"id"`
	Removed bool          `json:"removed,omitempty"` // its cgroup is, by a program that has left it
	Release []byte        `json:"release"`
	Runs    int           `json:"runs"`
	Armed   bool          `json:"armed,omitempty"`
	After   time.Duration `json:"after,omitempty"`
	Parts   []carriedPart `json:"parts"`
	Effects []byte        `json:"effects,omitempty"` // how to undo them
}

// carriedPart is a start that is alive, or not yet proved dead.
type carriedPart struct {
	Pid   int          `json:"pid"`
	Start uint64       `json:"start,omitempty"`
	Ended *ExitStatus  `json:"ended,omitempty"` // the program has; what it forked may live
	Path  string       `json:"path,omitempty"`  // of its cgroup
	Found bool         `json:"found,omitempty"` // it was not started, but found in another cgroup
	Stub  *carriedStub `json:"stub,omitempty"`
}

type carriedStub struct {
	Pid        int    `json:"pid"`
	Start      uint64 `json:"start"`
	Socket     int    `json:"socket"`
	DeadSignal int    `json:"dead_signal,omitempty"`
}

type carriedWatchdog struct {
	File      int           `json:"file"`
	Timeout   time.Duration `json:"timeout"`
	Permanent bool          `json:"permanent,omitempty"`
}

// HandOver calls do, which execs, on the thread that forked all processes. Meanwhile no process is forked, and the guardians get no
// messages. do's argument is for AdoptGuard in the process's next image, together with descriptors that stay open over an exec.
// HandOver returns only if do does, or without calling it; then everything is as before. It returns ErrBusy unless these are the only
// leases, with so many trees each.
func (g *Guard) HandOver(ctx context.Context, trees map[uint64]int, do func(state json.RawMessage) error) error {
	if g.cfg.Thread == nil {
		return errors.New("hand over: the guard does not have the main thread")
	}
	var failed error
	err := g.spawner.do(ctx, func() { failed = g.handOver(trees, do) })
	err = errors.Join(err, failed)
	if err != nil {
		return fmt.Errorf("hand over: %w", err)
	}
	return nil
}

func (g *Guard) handOver(trees map[uint64]int, do func(state json.RawMessage) error) (err error) {
	if unix.Gettid() != unix.Getpid() {
		return errors.New("this is not the main thread")
	}
	syscall.ForkLock.Lock() // no other process inherits the descriptors that stay open
	defer syscall.ForkLock.Unlock()
	defer g.guardians.lock()()
	h := &handing{}
	defer h.close()
	state, err := g.carry(h, trees)
	if err != nil {
		return err
	}
	return do(state)
}

// handing holds the parts that must not change during a hand-over.
type handing struct {
	fds    []int // open over an exec
	unlock []func()
}

// still keeps a process from being reaped meanwhile: the next image finds it, dead or alive.
func (h *handing) still(reaping *sync.Mutex) error {
	if !reaping.TryLock() {
		return ErrBusy
	}
	h.unlock = append(h.unlock, reaping.Unlock)
	return nil
}

func (h *handing) close() {
	for _, fd := range h.fds {
		_ = unix.Close(fd)
	}
	for _, unlock := range h.unlock {
		unlock()
	}
}

// duplicate is reexec.LeaveFile, as long as h holds.
func (h *handing) duplicate(f *os.File) (int, error) {
	kept, err := reexec.LeaveFile(f)
	if err == nil {
		h.fds = append(h.fds, kept)
	}
	return kept, err
}

// carry gathers the whole state. The caller holds mu.
func (g *Guard) carry(h *handing, trees map[uint64]int) (json.RawMessage, error) {
	if len(g.watchdog.turn) > 0 {
		return nil, ErrBusy
	}
	l, err := g.guardians.pair.HandOver(wire.Now(), trees)
	if err != nil {
		return nil, err
	}
	c := carried{Container: g.cfg.Container, Seq: l.Seq, Trees: l.Trees}
	for i, s := range g.guardians.at {
		c.Guardians[i], err = s.carry(h, l.Acked[i])
		if err != nil {
			return nil, err
		}
	}
	for i, e := range l.Leases {
		one := carriedLease{Number: e.Number, Ticket: e.Ticket, Deadline: e.Deadline}
		for _, t := range e.Trees {
			tree, err := t.Spec.Of.(*Tree).carry(h, t)
			if err != nil {
				return nil, err
			}
			one.Trees = append(one.Trees, tree)
		}
		if i == 0 {
			c.Lease = one
		} else {
			c.Others = append(c.Others, one)
		}
	}
	if d := g.watchdog.device; d != nil {
		fd, err := h.duplicate(d.File)
		if err != nil {
			return nil, err
		}
		c.Watchdog = &carriedWatchdog{fd, d.Timeout, d.Permanent}
	}
	return json.Marshal(c)
}

// carry describes a guardian that is well.
func (s *guardianProcess) carry(h *handing, acked uint64) (carriedGuardian, error) {
	if s == nil || s.clogged || s.gone() {
		return carriedGuardian{}, ErrBusy
	}
	if err := h.still(&s.reaping); err != nil {
		return carriedGuardian{}, err
	}
	own, err := box.StatOf(s.pid)
	if err != nil {
		return carriedGuardian{}, err
	}
	fd, err := h.duplicate(s.link.File)
	return carriedGuardian{Pid: s.pid, Start: own.Start, Socket: fd, Acked: acked}, err
}

// carry describes a tree in which nothing is being started or killed. It stays so until h is closed.
func (t *Tree) carry(h *handing, l guard.HandoverTree) (carriedTree, error) {
	t.mu.Lock()
	h.unlock = append(h.unlock, t.mu.Unlock)
	c := carriedTree{Number: l.Number, ID: t.id, Release: l.Spec.Release, Runs: t.runs, Armed: l.Armed, After: l.After, Effects: l.Effects}
	c.Removed = t.cgroup != nil && t.cgroup.Removed()
	for _, p := range t.parts {
		part, err := p.carry(h)
		if errors.Is(err, os.ErrClosed) { // its stub has ended, and was reaped
			if dead, looked := p.box.Dead(); dead && looked == nil {
				continue // P2: none of its processes is left
			}
			err = ErrBusy
		}
		if err != nil {
			return c, err
		}
		c.Parts = append(c.Parts, part)
	}
	return c, nil
}

func (p *part) carry(h *handing) (c carriedPart, err error) {
	if p.found && p.users == 0 {
		return carriedPart{Pid: p.first.Pid, Start: p.first.Start, Path: p.path, Found: true}, nil
	}
	if p.proc == nil || p.users > 0 || p.over {
		return c, ErrBusy
	}
	if s := p.stub; s != nil {
		s.reading.Lock() // so that no message of it is read and lost
		h.unlock = append(h.unlock, s.reading.Unlock)
		if err := h.still(&s.reaping); err != nil {
			return c, err
		}
		c.Stub = &carriedStub{Pid: s.Pid, Start: s.Start}
		c.Stub.Socket, err = h.duplicate(s.Link.File)
		if err != nil {
			return c, err
		}
		if s.DeadSignal != nil {
			c.Stub.DeadSignal, err = h.duplicate(s.DeadSignal)
			if err != nil {
				return c, err
			}
		}
	} else {
		c.Path = p.path
	}
	c.Pid = p.proc.pid
	select {
	case <-p.proc.done:
		c.Ended = &p.proc.status
	default:
		if p.stub == nil {
			own, err := box.StatOf(c.Pid)
			if err != nil {
				return c, ErrBusy // it has ended just now
			}
			c.Start = own.Start
		}
	}
	return c, nil
}
