package child

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"understudy/supervisor/child/box"
	"understudy/supervisor/child/runas"
	"understudy/supervisor/child/wire"
	"understudy/supervisor/guard"
)

const (
	startLimit = 5 * time.Second  // for a guardian to answer that replaces another
	twinGrace  = time.Second      // how long one guardian serves alone before it ends everything
	firstLimit = 20 * time.Second // for each that is started first: nobody waits but a machine that boots and has much to do
)

// guardianProcess is one guardian process, as the supervisor sees it.
type guardianProcess struct {
	pid     int
	process *os.Process
	pidfd   *os.File
	link    wire.Link
	once    sync.Once
	reaping sync.Mutex // held while it is reaped

	whyMu sync.Mutex // guards why
	why   error

	number  uint64           // the pair's, guarded by guardians.mu, as are the next two
	clogged bool             // its socket was full
	pending []*guard.Message // messages that it did not take
}

// startGuardian starts a guardian and waits for its first answer, until ctx ends.
func (g *guardians) startGuardian(ctx context.Context, index int) (*guardianProcess, error) {
	ours, theirs, err := wire.SocketPair()
	if err != nil {
		return nil, err
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, errors.Join(err, ours.Close(), theirs.Close())
	}
	defer null.Close()
	pidfd := -1
	title := fmt.Sprintf("understudy%s%d/2 of node %s", box.GuardianMark, index+1, g.start.name)
	process, err := os.StartProcess(g.start.exe, []string{title}, &os.ProcAttr{
		Dir:   "/",
		Env:   append(runas.Environ(), "GOMAXPROCS=1"),
		Files: []*os.File{null, null, os.Stderr, theirs},
		// A session of its own: Ctrl-C at the supervisor's terminal does not reach it. And no death signal: it
		// has to outlive its parent.
		Sys: &syscall.SysProcAttr{Setsid: true, PidFD: &pidfd},
	})
	_ = theirs.Close() // so that its end shows at ours, even before its first message
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start guardian: %w", err), ours.Close())
	}
	s := &guardianProcess{pid: process.Pid, process: process, pidfd: os.NewFile(uintptr(pidfd), "guardian"), link: wire.Link{File: ours}}
	err = s.link.Send(&guard.Message{Op: guard.OpSetup, Seq: 1, Index: index, Grace: twinGrace, Log: &g.start.log})
	if err == nil {
		err = s.answer(ctx)
	}
	if err != nil {
		s.destroy()
		return nil, fmt.Errorf("guardian %d does not answer: %w", index+1, err)
	}
	return s, nil
}

// answer waits for the first answer.
func (s *guardianProcess) answer(ctx context.Context) error {
	ended := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() { ended <- s.link.File.SetReadDeadline(time.Now()) })
	err := s.await(time.Time{}, 1, func(*guard.Message) {})
	if stop() {
		return err
	}
	return errors.Join(context.Cause(ctx), <-ended)
}

// await reads until everything up to seq is acknowledged, for a guardian that attend does not serve yet.
func (s *guardianProcess) await(deadline time.Time, seq uint64, heard func(*guard.Message)) error {
	if err := s.link.File.SetReadDeadline(deadline); err != nil {
		return err
	}
	buf := make([]byte, wire.MaxPacket)
	for {
		m, err := s.link.Receive(buf)
		if err != nil {
			return err
		}
		heard(&m)
		if m.Op == guard.OpAck && m.Seq >= seq {
			return s.link.File.SetReadDeadline(time.Time{})
		}
	}
}

// send passes a message on without waiting, and reports whether the socket takes it.
func (s *guardianProcess) send(m *guard.Message) bool {
	err := s.link.Send(m)
	if errors.Is(err, unix.EAGAIN) {
		return false
	}
	s.sent(m, err)
	return true
}

// sent handles the result of sending.
func (s *guardianProcess) sent(m *guard.Message, err error) {
	if err == nil || errors.Is(err, os.ErrClosed) {
		return // the descriptor's object is gone, which others notice; or the guardian was let go
	}
	s.because(fmt.Errorf("send %s: %w", m.Op, err))
	s.kill()
}

// unclog sends the messages that a full socket did not take, in their order.
func (g *guardians) unclog(s *guardianProcess) {
	for {
		unlock := g.lock()
		batch := s.pending
		s.pending = nil
		s.clogged = len(batch) > 0
		unlock()
		if len(batch) == 0 {
			return
		}
		for _, m := range batch {
			s.sent(m, s.link.SendPatiently(m))
		}
	}
}

func (s *guardianProcess) kill() { _ = box.SignalHeld(s.pidfd, unix.SIGKILL) }

// gone reports whether the process has ended, without waiting.
func (s *guardianProcess) gone() bool {
	dead, err := wire.Ready(s.pidfd)
	return dead || err != nil // its pidfd is closed only after it was reaped
}

// destroy ends a guardian that attend does not serve.
func (s *guardianProcess) destroy() {
	s.kill()
	s.cleanUp()
}

// cleanUp reaps a guardian that has ended or was killed, and frees its resources.
func (s *guardianProcess) cleanUp() {
	s.once.Do(func() {
		s.reaping.Lock()
		defer s.reaping.Unlock()
		_, _ = box.WaitFor(s.process)
		_ = s.link.File.Close()
		_ = s.pidfd.Close()
	})
}

func (s *guardianProcess) because(err error) {
	s.whyMu.Lock()
	defer s.whyMu.Unlock()
	if s.why == nil {
		s.why = err
	}
}

func (s *guardianProcess) cause() error {
	s.whyMu.Lock()
	defer s.whyMu.Unlock()
	return s.why
}
