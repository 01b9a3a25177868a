package child

import (
	"context"
	"errors"
	"fmt"
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

// stub is the process between the supervisor and a program if there is no cgroup. A cgroup that was removed refuses a late fork; here the
// stub is forked early instead, and waits at a gate until both guardians hold it: a guardian that ends the lease kills it there.
type stub struct {
	*inside.Stub

	reading sync.Mutex // held from the reading of a message until it has been acted upon
	reaping sync.Mutex // held while it is reaped
}

// inStub starts a program behind a new stub.
func (t *attempt) inStub(ctx context.Context) (*Process, error) {
	if t.spec.Bounds != (box.Bounds{}) {
		return nil, errors.New("limits of memory, cpu and tasks need a cgroup, and programs are contained otherwise here")
	}
	g, prog := t.guard, t.prog
	order, err := prog.File()
	if err != nil {
		return nil, err
	}
	defer order.Close()
	s := &stub{}
	var forked error
	err = g.spawner.do(ctx, func() { s.Stub, forked = t.forkStub() })
	err = errors.Join(err, forked)
	if err != nil {
		return nil, err
	}
	if m, err := s.NextMessage(ctx, 5*time.Second); err != nil || m.Op != wire.OpReady {
		s.Abort()
		return nil, fmt.Errorf("stub does not come up: %w %s", err, m.Why)
	}
	in, seq, err := t.adopt(s)
	if err != nil {
		s.Abort()
		return nil, err
	}
	p := &Process{tree: t.Tree, part: in, pid: s.Pid, done: make(chan struct{})}
	p.signal = s.Signal
	begun := make(chan guard.Message, 1)
	g.guardians.tasks.Go(func() { s.follow(p, begun) })
	// P3: from here on the guardians can kill it. Only now open the gate.
	if err := g.guardians.answered(ctx, seq); err != nil {
		return nil, errors.Join(err, in.giveUp(ctx))
	}
	if g.beforeSpawn != nil {
		g.beforeSpawn()
	}
	if err := s.OpenGate(order); err != nil {
		return nil, errors.Join(in.killedAtGate(), err, in.giveUp(ctx))
	}
	late, cancel := inside.Lingering(ctx)
	defer cancel()
	select {
	case m := <-begun:
		switch m.Op {
		case wire.OpRuns:
			p.pid = box.HostPid(s.Pid, m.Number)
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

// forkStub forks a stub for the program.
func (t *attempt) forkStub() (*inside.Stub, error) {
	files, closeIn, err := t.spec.files()
	defer closeIn()
	if err != nil {
		return nil, err
	}
	by := box.MakerName(t.id.PidNS, t.id.Pid, t.id.StartTime)
	return inside.ForkStub(t.guard.cfg.Container, t.id.Mark, by, files, runas.Environ())
}

// adopt makes the stub part of the tree, also for the guardians.
func (t *attempt) adopt(s *stub) (in *part, seq uint64, err error) {
	defer t.guard.guardians.lock()()
	t.mu.Lock()
	defer t.mu.Unlock()
	in = newPart(t.Tree, s.Box, s)
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
		m, err := s.Link.ReceiveAnd(buf, &s.reading, func(m *guard.Message) {
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
	_, _ = box.WaitFor(s.Process)
	_ = s.Link.File.Close()
}
