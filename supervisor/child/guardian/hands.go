package guardian

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"understudy/supervisor/child/box"
	"understudy/supervisor/child/device"
	"understudy/supervisor/child/wire"
	"understudy/supervisor/guard"
)

// Open implements guard.Hands: it fails rather than open another object of the same name.
func (g *guardian) Open(m *guard.Message) (guard.Box, error) {
	b, err := openBox(m.Box, wire.FileOf(m))
	if err == nil {
		return &heldBox{Box: b, cgroup: m.Box.Kind == box.KindCgroup}, nil
	}
	switch {
	case m.Seq > 0 && m.Op == guard.OpJoin: // it waits at its gate
	// P3: the tree may hold a process that has left the cgroup, which follows.
	case m.Box.Kind == box.KindCgroup && box.Vanished(m.Box.Path):
		return nil, nil
	case errors.Is(err, errGone) && m.Box.Kind == box.KindPidNS:
		return nil, nil
	case errors.Is(err, errGone) && wire.FileOf(m) != nil:
		return leftBy(wire.FileOf(m))
	}
	return nil, err
}

// Take implements guard.Hands.
func (g *guardian) Take(m *guard.Message) error {
	file := wire.FileOf(m)
	switch {
	case file == nil:
		return errors.New("no descriptor came along")
	case m.Op == guard.OpTwin:
		if g.twin != nil {
			_ = g.twin.Close()
		}
		g.twin, g.alone = file, false
		return nil
	}
	defer file.Close()
	return g.keepWatchdog(file)
}

// Tell implements guard.Hands. Messages that a full socket does not take follow later.
func (g *guardian) Tell(m *guard.Message) { g.above.send(m) }

// Close implements guard.Hands.
func (g *guardian) Close(c guard.Closing) { g.closing.start(c) }

// Feed implements guard.Hands. The device does not care which guardian feeds it.
func (g *guardian) Feed() {
	food := [1]byte{'1' + byte(g.index)}
	_, _ = unix.Write(g.watchdog, food[:]) // nobody needs the error: the twin tries as well
}

// LetGo implements guard.Hands.
func (g *guardian) LetGo(last bool) {
	if last {
		_, _ = unix.Write(g.watchdog, []byte(device.Farewell))
	}
	_ = unix.Close(g.watchdog)
	g.watchdog = -1
}

// keepWatchdog keeps a descriptor of its own, which the runtime's poller does not know.
func (g *guardian) keepWatchdog(file *os.File) error {
	fd, err := dupOf(file)
	if err != nil {
		return err
	}
	if g.watchdog >= 0 {
		_ = unix.Close(g.watchdog)
	}
	g.watchdog = fd
	return nil
}

// dupOf duplicates a file's descriptor: both share all settings.
func dupOf(file *os.File) (fd int, err error) {
	err = wire.Using(file, func(held int) (err error) {
		fd, err = unix.FcntlInt(uintptr(held), unix.F_DUPFD_CLOEXEC, 0)
		return err
	})
	return fd, err
}

// heldBox is a box that a guardian holds.
type heldBox struct {
	box.Box
	cgroup bool // a cgroup, which holds the others of its tree
}

// Order implements guard.Box.
func (p *heldBox) Order() { _ = p.Box.Order() }

// Waits implements guard.Box: an order to a cgroup may wait for the kernel's lock.
func (p *heldBox) Waits() bool { return p.cgroup }

// Look implements guard.Box.
func (p *heldBox) Look(othersDead bool) guard.Look {
	remove := othersDead || !p.cgroup
	dead, err := guard.KillOnce(p.Box, remove)
	if dead && remove {
		return guard.Look{Dead: true}
	}
	if !remove {
		p.Seal()
	}
	_, _, patience := p.Wake()
	return guard.Look{Moves: errors.Is(err, box.ErrMore), Again: patience}
}

var errGone = errors.New("it is gone")

// openBox opens a box that another process named.
func openBox(ref *guard.Ref, deadSignal *os.File) (box.Box, error) {
	if ref.Kind == box.KindCgroup {
		return box.OpenTreeCgroup(ref.Path, ref.Inode)
	}
	held, err := box.HoldProcess(ref.Pid, ref.Start)
	if err != nil {
		return nil, err
	}
	if held == nil {
		return nil, fmt.Errorf("process %d: %w", ref.Pid, errGone)
	}
	if ref.Kind == box.KindPidNS {
		return &box.InitBox{Pidfd: held}, nil
	}
	if deadSignal == nil {
		return nil, errors.Join(errors.New("stub without a dead signal"), held.Close())
	}
	return &box.WalkBox{Pid: ref.Pid, Pidfd: held, DeadSignal: deadSignal}, nil
}

// leftBy is the box of a walked tree whose stub is gone: nil, if the stub has seen the tree dead.
func leftBy(deadSignal *os.File) (guard.Box, error) {
	saw, err := wire.Ready(deadSignal)
	switch err := errors.Join(err, deadSignal.Close()); {
	case err != nil:
		return nil, err
	case saw:
		return nil, nil
	}
	return lost{}, nil
}

// lost is the rest of a tree whose stub died before it had seen the tree dead: nobody finds it, and nothing proves its death.
type lost struct{}

// Order implements guard.Box.
func (lost) Order() {}

// Waits implements guard.Box.
func (lost) Waits() bool { return false }

// Look implements guard.Box.
func (lost) Look(bool) guard.Look { return guard.Look{Again: time.Second} }

// Close implements guard.Box.
func (lost) Close() {}
