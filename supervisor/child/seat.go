package child

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"understudy/supervisor/guard"
)

const guardianSocket = 3

// seat is one guardian process as the supervisor sees it. Its fields from acked on are guarded by Guard.mu.
type seat struct {
	index   int
	pid     int
	process *os.Process
	pidfd   *os.File
	link    link
	once    sync.Once
	reaping sync.Mutex  // held while it is reaped
	silent  atomic.Bool // its socket has closed: it is dying, if not dead

	whyMu sync.Mutex // guards why
	why   error

	acked   uint64           // everything up to here is done by it
	heed    uint64           // the newest question whether it is awake
	live    bool             // it knows everything; before that, messages are queued
	clogged bool             // its socket was full, so messages are queued
	pending []*guard.Message // queued
}

func lockThread() func() {
	runtime.LockOSThread()
	return runtime.UnlockOSThread
}

// newSeat starts a guardian and waits for its first answer.
func (g *Guard) newSeat(ctx context.Context, index int) (*seat, error) {
	ours, theirs, err := socketPair()
	if err != nil {
		return nil, err
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, errors.Join(err, ours.Close(), theirs.Close())
	}
	defer null.Close()
	pidfd := -1
	title := fmt.Sprintf("%s%s%d/2 of node %s", g.cfg.Args0, guardianMark, index+1, g.cfg.Name)
	process, err := os.StartProcess(g.cfg.Exe, []string{title}, &os.ProcAttr{
		Dir:   "/",
		Env:   append(Environ(), "GOMAXPROCS=1"),
		Files: []*os.File{null, null, os.Stderr, theirs},
		// A session of its own: Ctrl-C at the supervisor's terminal does not reach it. And no death signal: it
		// has to outlive its parent.
		Sys: &syscall.SysProcAttr{Setsid: true, PidFD: &pidfd},
	})
	_ = theirs.Close() // so that its end shows at ours, even before it has said a word
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start guardian: %w", err), ours.Close())
	}
	s := &seat{
		index: index, pid: process.Pid, process: process,
		pidfd: os.NewFile(uintptr(pidfd), "guardian"), link: link{ours},
	}
	if err := g.handshake(ctx, s, &guard.Message{Op: guard.OpSetup, Seq: 1, Index: index, Grace: g.cfg.TwinGrace}); err != nil {
		s.destroy()
		return nil, fmt.Errorf("guardian %d does not answer: %w", index+1, err)
	}
	return s, nil
}

func (g *Guard) handshake(ctx context.Context, s *seat, setup *guard.Message) error {
	deadline := time.Now().Add(5 * time.Second)
	if at, ok := ctx.Deadline(); ok && at.Before(deadline) {
		deadline = at
	}
	if err := s.link.send(setup); err != nil {
		return err
	}
	return g.await(s, deadline, setup.Seq)
}

// errBlind: a new guardian does not know of a tree that is there.
var errBlind = errors.New("it cannot take a tree in")

// await reads until everything up to seq is acknowledged; for a seat that nobody attends yet.
func (g *Guard) await(s *seat, deadline time.Time, seq uint64) error {
	if err := s.link.file.SetReadDeadline(deadline); err != nil {
		return err
	}
	buf := make([]byte, maxPacket)
	for {
		m, err := s.link.receive(buf)
		if err != nil {
			return err
		}
		g.heard(s, &m)
		if m.Op == guard.OpNack && m.Tree > 0 && m.Seq == 0 { // a number of its own would acknowledge what is still to be replayed
			return fmt.Errorf("%w: tree %d of epoch %d: %s", errBlind, m.Tree, m.Epoch, m.Why)
		}
		if m.Op == guard.OpAck && m.Seq >= seq {
			return s.link.file.SetReadDeadline(time.Time{})
		}
	}
}

// clogPatience is how long a guardian may leave its socket full. If it is not stuck, it empties it in milliseconds.
const clogPatience = time.Second

// send passes a message on without waiting. What a full socket does not take follows when it does; a guardian whose socket
// stays full is stuck, and taken for dead. The caller holds Guard.mu.
func (g *Guard) send(s *seat, m *guard.Message) {
	if !s.live || s.clogged {
		s.pending = append(s.pending, m)
		return
	}
	err := s.link.send(m)
	if errors.Is(err, os.ErrClosed) && fileOf(m) != nil {
		return // what the descriptor stands for is gone, which is noticed elsewhere
	}
	if errors.Is(err, unix.EAGAIN) {
		s.clogged, s.pending = true, []*guard.Message{m}
		g.tasks.Go(func() { g.unclog(s) })
		return
	}
	if err != nil {
		s.because(fmt.Errorf("send %s: %w", m.Op, err))
		s.kill()
	}
}

// unclog sends what a full socket did not take, in its order.
func (g *Guard) unclog(s *seat) {
	for {
		g.mu.Lock()
		batch := s.pending
		s.pending = nil
		s.clogged = len(batch) > 0
		g.mu.Unlock()
		if len(batch) == 0 {
			return
		}
		for _, m := range batch {
			if err := s.sendPatiently(nil, m, time.Now().Add(clogPatience)); err != nil {
				s.because(fmt.Errorf("send %s: %w", m.Op, err))
				s.kill()
				return
			}
		}
	}
}

func (s *seat) kill() { _ = signalHeld(s.pidfd, unix.SIGKILL) }

// gone says whether the process has ended, without waiting.
func (s *seat) gone() bool {
	dead, err := ready(s.pidfd)
	return dead || err != nil || s.silent.Load() // its pidfd is closed only after it was reaped
}

// destroy ends a guardian that nobody attends.
func (s *seat) destroy() {
	s.kill()
	s.once.Do(func() {
		_, _ = waitFor(s.process)
		_ = s.link.file.Close()
		_ = s.pidfd.Close()
	})
}

func (s *seat) because(err error) {
	s.whyMu.Lock()
	defer s.whyMu.Unlock()
	if s.why == nil {
		s.why = err
	}
}

func (s *seat) cause() error {
	s.whyMu.Lock()
	defer s.whyMu.Unlock()
	return s.why
}

// informedSeat starts a guardian that knows everything.
func (g *Guard) informedSeat(ctx context.Context, index int) (*seat, error) {
	s, err := g.newSeat(ctx, index)
	if err != nil {
		return nil, err
	}
	if err := g.inform(ctx, s); err != nil {
		g.unseat(s)
		return nil, err
	}
	return s, nil
}

// inform tells a new guardian all that there is, and seats it. Whatever happens meanwhile is queued for it.
func (g *Guard) inform(ctx context.Context, s *seat) error {
	deadline := time.Now().Add(2 * time.Second)
	g.mu.Lock()
	s.live = false
	s.pending = g.replay()
	g.seats[s.index] = s
	for {
		batch := s.pending
		s.pending = nil
		if len(batch) == 0 {
			s.live = true
			g.seq++
			seq := g.seq
			g.send(s, &guard.Message{Op: guard.OpPing, Seq: seq})
			g.mu.Unlock()
			if err := g.await(s, deadline, seq); err != nil {
				return err
			}
			return nil
		}
		g.mu.Unlock()
		for _, m := range batch {
			if err := s.sendPatiently(ctx.Done(), m, deadline); err != nil {
				return fmt.Errorf("tell the new guardian: %w", err)
			}
		}
		g.mu.Lock()
	}
}

// sendPatiently waits while the guardian's socket is full.
func (s *seat) sendPatiently(enough <-chan struct{}, m *guard.Message, deadline time.Time) error {
	for {
		err := s.link.send(m)
		if errors.Is(err, os.ErrClosed) && fileOf(m) != nil {
			return nil // what it was about has ended meanwhile
		}
		if !errors.Is(err, unix.EAGAIN) {
			return err
		}
		select {
		case <-enough:
			return err
		default:
		}
		if time.Now().After(deadline) {
			return err
		}
		rest(-1, 0, time.Millisecond)
	}
}

// Pid is the process id of a guardian, 0 when there is none at the moment.
func (g *Guard) Pid() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, s := range g.seats {
		if s != nil {
			return s.pid
		}
	}
	return 0
}
