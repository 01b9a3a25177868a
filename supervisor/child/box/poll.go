package box

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"understudy/supervisor/child/wire"
)

// poller waits for events of many descriptors without a thread: the runtime's own poller waits for its epoll. A waiting thread for
// each program would count against the limit of tasks that the programs share; and the runtime ends a process that cannot get a
// thread that it needs.
type poller struct {
	epoll *os.File
	conn  syscall.RawConn

	mu    sync.Mutex // guards the fields below
	last  uint64
	waits map[uint64]chan<- struct{} // closed at the event
}

// polled is this process's poller.
var polled = sync.OnceValues(func() (*poller, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err == nil {
		err = unix.SetNonblock(fd, true) // the runtime's poller takes no blocking descriptor
	}
	if err != nil {
		return nil, fmt.Errorf("poller: %w", err)
	}
	p := &poller{epoll: os.NewFile(uintptr(fd), "poller"), waits: make(map[uint64]chan<- struct{})}
	p.conn, err = p.epoll.SyscallConn()
	if err != nil {
		return nil, fmt.Errorf("poller: %w", err)
	}
	go p.run() // ends with the process
	return p, nil
})

func (p *poller) run() {
	events := make([]unix.EpollEvent, 64)
	err := p.conn.Read(func(fd uintptr) bool {
		for {
			n, err := unix.EpollWait(int(fd), events, 0)
			for _, e := range events[:max(n, 0)] {
				p.ring(uint64(uint32(e.Fd)) | uint64(uint32(e.Pad))<<32)
			}
			if n == 0 || err != nil && err != unix.EINTR {
				return false
			}
		}
	})
	panic(fmt.Sprintf("child: the poller has ended: %v", err)) // nobody closes it, and all who wait would wait for ever
}

// ring wakes the waiting goroutine, unless it has given up.
func (p *poller) ring(number uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if rung := p.waits[number]; rung != nil {
		delete(p.waits, number)
		close(rung)
	}
}

// watch closes rung when one of the events is there, once. The descriptor must stay open, and be nobody else's
// here, until forget is called, which has to be.
func (p *poller) watch(fd int, events int16) (rung <-chan struct{}, forget func(), err error) {
	ch := make(chan struct{})
	p.mu.Lock()
	p.last++
	number := p.last
	p.waits[number] = ch
	p.mu.Unlock()
	ctl := func(op int) error {
		e := unix.EpollEvent{Events: uint32(events) | unix.EPOLLONESHOT, Fd: int32(number), Pad: int32(number >> 32)}
		return wire.Using(p.epoll, func(epoll int) error { return unix.EpollCtl(epoll, op, fd, &e) })
	}
	if err := ctl(unix.EPOLL_CTL_ADD); err != nil {
		p.ring(number)
		return nil, nil, fmt.Errorf("wait for descriptor %d: %w", fd, err)
	}
	return ch, func() {
		_ = ctl(unix.EPOLL_CTL_DEL)
		p.ring(number)
	}, nil
}

// WaitFor waits for a process's end and reaps it. It holds a thread only if the kernel or its memory allow no other way.
func WaitFor(process *os.Process) (*os.ProcessState, error) {
	p, err := polled()
	if err != nil {
		return process.Wait()
	}
	var rung <-chan struct{}
	var forget func()
	handleErr := process.WithHandle(func(pidfd uintptr) { rung, forget, err = p.watch(int(pidfd), unix.POLLIN) })
	err = errors.Join(handleErr, err)
	if err != nil {
		return process.Wait()
	}
	<-rung
	forget() // before Wait, which closes the descriptor
	return process.Wait()
}

// Sleep waits for events on fd, for so long at most, without a thread. A descriptor below zero is only a wait.
func Sleep(fd int, events int16, patience time.Duration) {
	if patience <= time.Millisecond { // the way through the runtime takes a tenth of a millisecond
		select {
		case looking <- struct{}{}:
			wire.PollOne(fd, events, patience)
			<-looking
			return
		default:
		}
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	var rung <-chan struct{} // nil: only the timer ends the wait
	if p, err := polled(); err == nil && fd >= 0 {
		// A number of our own: others may wait for the same, or close it meanwhile.
		if own, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3); err == nil {
			defer unix.Close(own)
			if ch, forget, err := p.watch(own, events); err == nil {
				defer forget()
				rung = ch
			}
		}
	}
	select {
	case <-rung:
	case <-timer.C:
	}
}
