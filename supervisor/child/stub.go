package child

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"understudy/supervisor/child/box"
	"understudy/supervisor/child/inside"
	"understudy/supervisor/child/runas"
	"understudy/supervisor/child/wire"
	"understudy/supervisor/guard"
)

// stub is the process between the supervisor and a program if there is no cgroup: the init of a PID namespace, or the
// subreaper of a walked tree. A cgroup that was removed refuses a late fork; here the stub is forked early instead, and
// waits at a gate until both guardians hold it: a guardian that ends the lease kills it there.
type stub struct {
	pid        int
	start      uint64
	process    *os.Process
	link       wire.Link
	deadSignal *os.File // walk only
	body       box.Body

	reading sync.Mutex // held from the reading of a message until it has been acted upon
	reaping sync.Mutex // held while it is reaped
}

// newStub forks a stub and returns when that waits at its gate. It must run on a thread that lives as long as the stub may.
func newStub(c box.Container, mark, by string, spec Spec) (*stub, error) {
	ours, theirs, err := wire.SocketPair()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	stdin, closeIn, err := spec.stdin()
	if err != nil {
		return nil, errors.Join(err, ours.Close())
	}
	defer closeIn()
	s := &stub{link: wire.Link{File: ours}}
	files := []*os.File{stdin, spec.stdout(), spec.stderr(), theirs}
	if c.Kind == box.KindWalk {
		s.deadSignal, err = box.NewDeadSignal()
		if err != nil {
			return nil, errors.Join(err, ours.Close())
		}
		files = append(files, s.deadSignal)
	}
	pidfd := -1
	attr := &os.ProcAttr{Dir: "/", Env: append(runas.Environ(), "GOMAXPROCS=1"), Files: files, Sys: stubAttr(c)}
	attr.Sys.PidFD = &pidfd
	s.process, err = os.StartProcess(ownBinary, inside.StubArgs(mark, c, by), attr)
	if err != nil {
		s.discard()
		return nil, inside.StartFault(fmt.Errorf("fork stub: %w", err))
	}
	s.pid = s.process.Pid
	held := os.NewFile(uintptr(pidfd), "stub")
	s.body = &box.InitBody{Pidfd: held}
	own, err := box.StatOf(s.pid)
	if err != nil {
		s.abort()
		return nil, err
	}
	s.start = own.Start
	if c.Kind == box.KindWalk {
		s.body = &box.WalkBody{Pid: s.pid, Pidfd: held, DeadSignal: s.deadSignal}
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

// hear waits for the stub's next message.
func (s *stub) hear(ctx context.Context, limit time.Duration) (guard.Message, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = s.link.File.SetReadDeadline(time.Now()) })
	m, err := s.link.Receive(make([]byte, wire.MaxPacket))
	if !stop() && err != nil {
		err = context.Cause(ctx)
	}
	if err == nil {
		err = s.link.File.SetReadDeadline(time.Time{})
	}
	return m, err
}

// signal has the stub send the program a signal.
func (s *stub) signal(sig syscall.Signal) error {
	return s.link.Send(&guard.Message{Op: wire.OpSignal, Number: int(sig)})
}

// discard frees everything but the process.
func (s *stub) discard() {
	_ = s.link.File.Close()
	switch {
	case s.body != nil:
		s.body.Close()
	case s.deadSignal != nil:
		_ = s.deadSignal.Close()
	}
}

// abort ends a stub that never came through its gate, and so has no tree.
func (s *stub) abort() {
	_ = s.process.Kill()
	_, _ = box.WaitFor(s.process)
	s.discard()
}

// inStub starts a program behind a new stub.
func (t *attempt) inStub(ctx context.Context) (*Process, error) {
	g, prog := t.guard, t.prog
	order, err := prog.File()
	if err != nil {
		return nil, err
	}
	defer order.Close()
	var s *stub
	var forked error
	err = g.spawner.do(ctx, func() {
		by := box.MakerName(t.id.PidNS, t.id.Pid, t.id.StartTime)
		s, forked = newStub(g.cfg.Container, t.id.Mark, by, t.spec)
	})
	err = errors.Join(err, forked)
	if err != nil {
		return nil, err
	}
	if m, err := s.hear(ctx, 5*time.Second); err != nil || m.Op != wire.OpReady {
		s.abort()
		return nil, fmt.Errorf("stub does not come up: %w %s", err, m.Why)
	}
	in, seq, err := t.adopt(s)
	if err != nil {
		s.abort()
		return nil, err
	}
	p := &Process{tree: t.Tree, part: in, pid: s.pid, done: make(chan struct{})}
	p.signal = s.signal
	begun := make(chan guard.Message, 1)
	g.guardians.tasks.Go(func() { s.follow(p, begun) })
	// P3: from here on the guardians can kill it. Only now open the gate.
	if err := g.guardians.answered(ctx, seq); err != nil {
		return nil, errors.Join(err, in.giveUp(ctx))
	}
	if g.beforeSpawn != nil {
		g.beforeSpawn()
	}
	if err := s.link.Send(&guard.Message{Op: wire.OpOpen, Along: order}); err != nil {
		return nil, errors.Join(in.killedAtGate(), err, in.giveUp(ctx))
	}
	late, cancel := inside.Lingering(ctx)
	defer cancel()
	select {
	case m := <-begun:
		switch m.Op {
		case wire.OpRuns:
			p.pid = hostPid(s.pid, m.Number)
			in.runs(p)
			return p, nil
		case wire.OpFailed:
			return nil, errors.Join(prog.Fault(&m), in.giveUp(ctx))
		case wire.OpExited:
			return nil, errors.Join(in.whyEarly(statusOf(syscall.WaitStatus(m.Number))), in.giveUp(ctx))
		}
		return nil, in.killedAtGate()
	case <-late.Done():
		return nil, errors.Join(context.Cause(late), in.giveUp(ctx))
	}
}

// adopt makes the stub part of the tree, also for the guardians.
func (t *attempt) adopt(s *stub) (in *part, seq uint64, err error) {
	defer t.guard.guardians.lock()()
	t.mu.Lock()
	defer t.mu.Unlock()
	in = newPart(t.Tree, s.body, s)
	seq, err = in.join()
	if err == nil {
		t.parts = append(t.parts, in)
	}
	return in, seq, err
}

// follow handles the stub's messages until it has ended, and reaps it. begun gets the first message; nil: it came before.
func (s *stub) follow(p *Process, begun chan<- guard.Message) {
	buf := make([]byte, wire.MaxPacket)
	ended := false
	select {
	case <-p.done:
		ended = true
	default:
		p.status = ExitStatus{Code: 128 + int(unix.SIGKILL), Signal: unix.SIGKILL, Unknown: true}
	}
	for {
		m, err := s.link.ReceiveAnd(buf, &s.reading, func(m *guard.Message) {
			if m.Op == wire.OpExited && !ended {
				ended = true
				p.status = statusOf(syscall.WaitStatus(m.Number))
				close(p.done)
			}
		})
		if begun != nil {
			begun <- m // on an error it is empty
			begun = nil
		}
		if err != nil {
			break
		}
	}
	if !ended {
		close(p.done)
	}
	s.reaping.Lock()
	defer s.reaping.Unlock()
	_, _ = box.WaitFor(s.process)
	_ = s.link.File.Close()
}

// hostPid finds the pid, in our namespace, of the stub's child whose pid is inner in its own namespace.
func hostPid(stubPid, inner int) int {
	all, err := box.Processes()
	if err != nil {
		return 0
	}
	for _, s := range box.Descendants(all, stubPid) {
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
