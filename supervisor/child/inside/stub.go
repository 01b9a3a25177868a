package inside

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"understudy/supervisor/child/box"
	"understudy/supervisor/child/wire"
	"understudy/supervisor/guard"
)

// OwnBinary is what guardians, stubs and our own commands are started from, whatever is in its place by now. The process that becomes such
// a command is a copy of the one that starts it, so the kernel takes that one's image.
const OwnBinary = "/proc/self/exe"

// Stub is the process between the supervisor and a program if there is no cgroup: the init of a PID namespace, or the
// subreaper of a walked tree.
type Stub struct {
	Pid        int
	Start      uint64
	Process    *os.Process
	Link       wire.Link
	DeadSignal *os.File // walk only
	Box        box.Box
}

// ForkStub forks a stub, whose program gets these files, and which itself runs with env. It must run on a thread that lives as long as the
// stub may.
func ForkStub(c box.Container, mark, by string, program [3]*os.File, env []string) (*Stub, error) {
	ours, theirs, err := wire.SocketPair()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	s := &Stub{Link: wire.Link{File: ours}}
	files := append(program[:], theirs)
	if c.Kind == box.KindWalk {
		s.DeadSignal, err = box.NewDeadSignal()
		if err != nil {
			return nil, errors.Join(err, ours.Close())
		}
		files = append(files, s.DeadSignal)
	}
	pidfd := -1
	attr := &os.ProcAttr{Dir: "/", Env: append(env, "GOMAXPROCS=1"), Files: files, Sys: stubAttr(c)}
	attr.Sys.PidFD = &pidfd
	s.Process, err = os.StartProcess(OwnBinary, stubArgs(mark, c, by), attr)
	if err != nil {
		s.discard()
		return nil, StartFault(fmt.Errorf("fork stub: %w", err))
	}
	s.Pid = s.Process.Pid
	held := os.NewFile(uintptr(pidfd), "stub")
	s.Box = &box.InitBox{Pidfd: held}
	own, err := box.StatOf(s.Pid)
	if err != nil {
		s.Abort()
		return nil, err
	}
	s.Start = own.Start
	if c.Kind == box.KindWalk {
		s.Box = &box.WalkBox{Pid: s.Pid, Pidfd: held, DeadSignal: s.DeadSignal}
	}
	return s, nil
}

// stubAttr are the attributes of a stub's process.
func stubAttr(c box.Container) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setsid: true}
	if c.Kind == box.KindWalk {
		// No death signal: a stub that goes before its tree leaves orphans that nobody finds. It sees the
		// supervisor's end at its socket, and ends the tree first.
		return attr
	}
	attr.Pdeathsig = syscall.SIGKILL // P4: the namespace dies with the init, whatever has become of the guardians
	attr.Cloneflags = syscall.CLONE_NEWPID
	if c.MountNS {
		attr.Cloneflags |= syscall.CLONE_NEWNS
	}
	if c.UserNS {
		attr.Cloneflags |= syscall.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}}
	}
	return attr
}

// NextMessage waits for the stub's next message.
func (s *Stub) NextMessage(ctx context.Context, limit time.Duration) (guard.Message, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = s.Link.File.SetReadDeadline(time.Now()) })
	m, err := s.Link.Receive(make([]byte, wire.MaxPacket))
	if !stop() && err != nil {
		err = context.Cause(ctx)
	}
	if err == nil {
		err = s.Link.File.SetReadDeadline(time.Time{})
	}
	return m, err
}

// OpenGate has the stub run the program.
func (s *Stub) OpenGate(prog *os.File) error {
	return s.Link.Send(&guard.Message{Op: wire.OpOpen, Along: prog})
}

// Signal has the stub send the program a signal.
func (s *Stub) Signal(sig syscall.Signal) error {
	return s.Link.Send(&guard.Message{Op: wire.OpSignal, Number: int(sig)})
}

// Abort ends a stub that never came through its gate, and so has no tree.
func (s *Stub) Abort() {
	_ = s.Process.Kill()
	_, _ = box.WaitFor(s.Process)
	s.discard()
}

// discard frees everything but the process.
func (s *Stub) discard() {
	_ = s.Link.File.Close()
	switch {
	case s.Box != nil:
		s.Box.Close()
	case s.DeadSignal != nil:
		_ = s.DeadSignal.Close()
	}
}
