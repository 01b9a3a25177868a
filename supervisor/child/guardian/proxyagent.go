package guardian

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"understudy/supervisor/child/box"
	"understudy/supervisor/child/wire"
	"understudy/supervisor/guard"
)

// ProxyAgent makes a function that holds a conversation in a supervisor's place and closes the connection, from the note that
// the supervisor shares with its listener. Many conversations may be open at a time; the function bounds them. seenDead
// reports whether the guardian itself has seen a tree dead under a lease that has ended, so that no start in it can succeed.
type ProxyAgent func(note []byte, seenDead func(box.TreeID) bool) (answer func(ctx context.Context, conn net.Conn), err error)

// proxyAgent answers at a shared listener, outside the guardian's loop.
type proxyAgent struct {
	answer  func(context.Context, net.Conn)
	fd      int // the listener
	bell    int // eventfd: look at the fields below
	alone   atomic.Bool
	retired atomic.Bool
}

const (
	leaveToSupervisor = 100 * time.Millisecond // to accept new connections
	breath            = 5 * time.Millisecond   // kills come first
	acceptsAtOnce     = 16
	answerLimit       = 12 * time.Second
)

// answering is how a guardian answers in its supervisor's place.
type answering struct {
	answers    ProxyAgent // nil: it does not
	proxyAgent *proxyAgent
	inquiries  chan inquiry
	bell       int // wakes the guardian's loop
}

// at takes over a listener, in place of the one before.
func (g *answering) at(listener *os.File, note []byte) error {
	if g.answers == nil {
		return nil
	}
	answer, err := g.answers(note, g.seenDead)
	if err != nil {
		return err
	}
	fd, err := dupOf(listener)
	if err != nil {
		return fmt.Errorf("keep the listener: %w", err)
	}
	bell, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		_ = unix.Close(fd)
		return fmt.Errorf("bell: %w", err)
	}
	if g.proxyAgent != nil {
		g.proxyAgent.retired.Store(true)
		_ = box.Ring(g.proxyAgent.bell)
	}
	g.proxyAgent = &proxyAgent{answer: answer, fd: fd, bell: bell}
	go g.proxyAgent.run()
	return nil
}

// nowAlone notes that there is no supervisor that could answer.
func (s *proxyAgent) nowAlone() {
	if s != nil {
		s.alone.Store(true)
		_ = box.Ring(s.bell)
	}
}

func (s *proxyAgent) run() {
	defer unix.Close(s.fd) // the bell stays: a goroutine may be about to ring it
	for {
		fds := []unix.PollFd{{Fd: int32(s.bell), Events: unix.POLLIN}, {Fd: int32(s.fd), Events: unix.POLLIN}}
		_, _ = unix.Poll(fds, -1)
		if s.retired.Load() || fds[1].Revents&(unix.POLLERR|unix.POLLNVAL) != 0 {
			return
		}
		var count [8]byte
		_, _ = unix.Read(s.bell, count[:])
		if fds[1].Revents == 0 {
			continue
		}
		if !s.alone.Load() {
			wire.PollOne(s.bell, unix.POLLIN, leaveToSupervisor)
			if !wire.Readable(s.fd) {
				continue
			}
		}
		for range acceptsAtOnce {
			if !s.accept() {
				break
			}
		}
		wire.PollOne(-1, 0, breath)
	}
}

// accept takes one connection, if there is one, and reports whether there may be more.
func (s *proxyAgent) accept() bool {
	fd, _, err := unix.Accept4(s.fd, unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK)
	if err != nil {
		return errors.Is(err, unix.ECONNABORTED)
	}
	file := os.NewFile(uintptr(fd), "connection")
	conn, err := net.FileConn(file)
	_ = file.Close()
	if err != nil {
		return true
	}
	go func() {
		defer func() {
			_ = recover() // kills go on after any fault here
			_ = conn.Close()
		}()
		ctx, cancel := context.WithTimeout(context.Background(), answerLimit)
		defer cancel()
		s.answer(ctx, conn) // without a log, since any log could block a guardian
	}()
	return true
}

// inquiry is a question to the guardian's loop, which alone knows the watched trees.
type inquiry struct {
	mark   string
	answer chan bool
}

// seenDead is called outside the loop, and answered by it.
func (g *answering) seenDead(id box.TreeID) bool {
	q := inquiry{mark: id.Mark, answer: make(chan bool, 1)}
	select {
	case g.inquiries <- q:
	default:
		return false
	}
	_ = box.Ring(g.bell)
	patience := time.NewTimer(time.Second)
	defer patience.Stop()
	select {
	case is := <-q.answer:
		return is
	case <-patience.C:
		return false
	}
}

// inquire answers the waiting questions.
func (g *answering) inquire(decider *guard.Guardian) {
	for {
		select {
		case q := <-g.inquiries:
			q.answer <- decider.SeenDead(q.mark)
		default:
			return
		}
	}
}
