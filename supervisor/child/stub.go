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

	"understudy/supervisor/guard"
)

const (
	initTitle   = " init of "
	stubMark    = "us-" // and ten hex digits: a command name has 15 bytes
	stubSocket  = 3
	stubWitness = 4
)

// stub is the process between the supervisor and a program if there is no cgroup: the init of a PID namespace, or the
// subreaper of a walked tree. A cgroup that was removed refuses a late fork; here the stub is forked early instead, and
// waits at a gate until both guardians hold it: a guardian that ends the lease kills it there.
type stub struct {
	pid     int
	start   uint64
	process *os.Process
	link    link
	witness *os.File // walk only
	body    body

	reading sync.Mutex // held from the reading of a message until it has been acted upon
	reaping sync.Mutex // held while it is reaped
}

// newStub forks a stub and returns when that waits at its gate. It must run on a thread that lives as long as the stub may.
func newStub(c Container, exe, args0, mark string, stdout, stderr *os.File) (*stub, error) {
	ours, theirs, err := socketPair()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, errors.Join(err, ours.Close())
	}
	defer null.Close()
	s := &stub{link: link{ours}}
	files := []*os.File{null, stdout, stderr, theirs}
	if c.Kind == KindWalk {
		if s.witness, err = newWitness(); err != nil {
			return nil, errors.Join(err, ours.Close())
		}
		files = append(files, s.witness)
	}
	pidfd := -1
	attr := &os.ProcAttr{Dir: "/", Env: append(Environ(), "GOMAXPROCS=1"), Files: files, Sys: c.stubAttr()}
	attr.Sys.PidFD = &pidfd
	s.process, err = os.StartProcess(exe, []string{args0 + initTitle + mark, c.Kind}, attr)
	if err != nil {
		s.discard()
		return nil, startFault(fmt.Errorf("fork stub: %w", err))
	}
	s.pid = s.process.Pid
	held := os.NewFile(uintptr(pidfd), "stub")
	s.body = &initBody{pidfd: held}
	own, err := statOf(s.pid)
	if err != nil {
		s.abort()
		return nil, err
	}
	s.start = own.start
	if c.Kind == KindWalk {
		s.body = &walkBody{pid: s.pid, pidfd: held, witness: s.witness}
	}
	return s, nil
}

// stubAttr are the attributes of a stub's process.
func (c Container) stubAttr() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setsid: true}
	if c.Kind == KindWalk {
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
	stop := context.AfterFunc(ctx, func() { _ = s.link.file.SetReadDeadline(time.Now()) })
	m, err := s.link.receive(make([]byte, maxPacket))
	if !stop() && err != nil {
		err = context.Cause(ctx)
	}
	if err == nil {
		err = s.link.file.SetReadDeadline(time.Time{})
	}
	return m, err
}

// discard frees everything but the process.
func (s *stub) discard() {
	_ = s.link.file.Close()
	switch {
	case s.body != nil:
		s.body.close()
	case s.witness != nil:
		_ = s.witness.Close()
	}
}

// abort ends a stub that never came through its gate, and so has no tree.
func (s *stub) abort() {
	_ = s.process.Kill()
	_, _ = waitFor(s.process)
	s.discard()
}

// inStub starts a program behind a new stub.
func (t *attempt) inStub(ctx context.Context) (*Process, error) {
	g, prog := t.guard, t.prog
	order, err := prog.write()
	if err != nil {
		return nil, err
	}
	defer order.Close()
	var s *stub
	var forked error
	err = g.spawner.do(ctx, func() {
		s, forked = newStub(g.cfg.Container, g.cfg.Exe, g.cfg.Args0, t.id.Mark, t.spec.stdout(), t.spec.stderr())
	})
	if err = errors.Join(err, forked); err != nil {
		return nil, err
	}
	if m, err := s.hear(ctx, 5*time.Second); err != nil || m.Op != opReady {
		s.abort()
		return nil, fmt.Errorf("stub does not come up: %w %s", err, m.Why)
	}
	in, seq, err := t.adopt(s)
	if err != nil {
		s.abort()
		return nil, err
	}
	p := &Process{tree: t.Tree, part: in, pid: s.pid, done: make(chan struct{})}
	p.signal = func(sig syscall.Signal) error { return s.link.send(&guard.Message{Op: opSignal, Number: int(sig)}) }
	begun := make(chan guard.Message, 1)
	g.guardians.tasks.Go(func() { s.follow(p, begun) })
	// P3: from here on the guardians can kill it. Only now open the gate.
	if err := g.guardians.answered(ctx, seq); err != nil {
		return nil, errors.Join(err, in.giveUp(ctx))
	}
	if g.beforeSpawn != nil {
		g.beforeSpawn()
	}
	if err := s.link.send(&guard.Message{Op: opOpen, Along: order}); err != nil {
		return nil, errors.Join(t.killedAtGate(), err, in.giveUp(ctx))
	}
	late, cancel := lingering(ctx, letGo)
	defer cancel()
	select {
	case m := <-begun:
		switch m.Op {
		case opRuns:
			p.pid = hostPid(s.pid, m.Number)
			in.runs(p)
			return p, nil
		case opFailed:
			return nil, errors.Join(prog.fault(&m), in.giveUp(ctx))
		case opExited:
			return nil, errors.Join(t.whyEarly(statusOf(syscall.WaitStatus(m.Number))), in.giveUp(ctx))
		}
		return nil, t.killedAtGate()
	case <-late.Done():
		return nil, errors.Join(context.Cause(late), in.giveUp(ctx))
	}
}

// whyEarly says why a launcher ended before it was the program.
func (t *attempt) whyEarly(status ExitStatus) error {
	if status.Signal == syscall.SIGKILL {
		return t.killedAtGate()
	}
	if status.Code == goDied {
		return fmt.Errorf("%w: its launcher did not get a thread, or memory: %s", errKilledEarly, adviceOnTasks)
	}
	return fmt.Errorf("%w: code %d", errKilledEarly, status.Code)
}

// killedAtGate returns the reason: only a guardian that ends the lease, or this process, kills a stub.
func (t *attempt) killedAtGate() error {
	cause := t.guard.Cause(t.entry.Epoch().Number)
	if cause == nil {
		cause = ErrLeaseEnded // the guardian's message is on its way
	}
	return fmt.Errorf("%w: killed before the program ran", cause)
}

// adopt makes the stub part of the tree, also for the guardians.
func (t *attempt) adopt(s *stub) (in *part, seq uint64, err error) {
	t.guard.guardians.mu.Lock()
	defer t.guard.guardians.unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	in = newPart(t.Tree, s.body, s)
	if seq, err = t.join(in); err == nil {
		t.parts = append(t.parts, in)
	}
	return in, seq, err
}

// follow handles the stub's messages until it has ended, and reaps it. begun gets the first message; nil: it came before.
func (s *stub) follow(p *Process, begun chan<- guard.Message) {
	buf := make([]byte, maxPacket)
	ended := false
	select {
	case <-p.done:
		ended = true
	default:
		p.status = ExitStatus{Code: 128 + int(unix.SIGKILL), Signal: unix.SIGKILL, Unknown: true}
	}
	for {
		m, err := s.link.receiveAnd(buf, &s.reading, func(m *guard.Message) {
			if m.Op == opExited && !ended {
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
	_, _ = waitFor(s.process)
	_ = s.link.file.Close()
}

// hostPid finds the pid, in our namespace, of the stub's child whose pid is inner in its own namespace.
func hostPid(stubPid, inner int) int {
	all, err := processes()
	if err != nil {
		return 0
	}
	for _, s := range descendants(all, stubPid) {
		status, err := os.ReadFile("/proc/" + strconv.Itoa(s.pid) + "/status")
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(status)) {
			if pids, ok := strings.CutPrefix(line, "NSpid:"); ok {
				fields := strings.Fields(pids)
				if len(fields) > 0 && fields[len(fields)-1] == strconv.Itoa(inner) {
					return s.pid
				}
			}
		}
	}
	return 0
}
