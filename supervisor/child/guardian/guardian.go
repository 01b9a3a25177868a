package guardian

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"understudy/supervisor/child/box"
	"understudy/supervisor/child/journal"
	"understudy/supervisor/child/wire"
	"understudy/supervisor/guard"
)

// CloseSession removes the lock and breadcrumb of each release of a settled tree, says in the breadcrumb of the others that effects are
// left, and then closes the ticket's ZooKeeper session. The trees of all releases are proved dead. Unless c.All, it must leave the session
// itself to expire: a process of the session may be alive, or an effect. It may be called several times, in several processes.
type CloseSession func(ctx context.Context, c guard.Closing) error

// Duties are what a guardian does that is not its own business.
type Duties struct {
	Close CloseSession
	Undo  Undoer // nil: it does not
}

// Is reports whether this process was started to be a guardian; then main only calls Main.
func Is() bool { return strings.Contains(os.Args[0], box.GuardianMark) }

// guardian is a guardian process, in which a guard.Guardian decides. Its loop waits only for events: it uses no file system but procfs and
// cgroupfs, no network, no log until all is done.
type guardian struct {
	decider  *guard.Guardian
	above    upLine
	index    int
	log      lastLog
	twin     *os.File // pidfd; nil until there is one
	alone    bool     // the twin is gone: its pidfd would be readable for ever
	alarm    *alarm
	closing  *closing
	undoing  undoing
	watchdog int // the device; -1: there is none, or none is needed
	buf      []byte
	polls    []unix.PollFd
}

const socket = 3 // the descriptor that its supervisor gives it

const threads = 5 // the loop, a closer and its files, an undo, the collector

// Main is the main function of a guardian process. It returns when the supervisor is gone, all trees are dead and
// their sessions are closed or given up.
func Main(duties Duties) (code int) {
	// A terminal's Ctrl-C or a service manager's TERM is for the supervisor; a guardian ends after it.
	signal.Ignore(unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGPIPE, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2,
		unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU)
	debug.SetGCPercent(25)
	box.ReserveThreads(threads)
	box.Spare(-1000)
	g, err := newGuardian(socket, duties)
	if err != nil {
		fmt.Fprintln(os.Stderr, "guardian:", err)
		return 1
	}
	g.log.journal = journal.Is(os.Stderr)
	unmute, err := muteStderr()
	if err != nil {
		return 1
	}
	defer func() {
		if r := recover(); r != nil { // the twin and the supervisor see this process end
			unmute(fmt.Sprintf("guardian: panic: %v\n%s", r, debug.Stack()))
			code = 1
		}
	}()
	code = g.loop()
	if deeds, tells := g.decider.Deeds(); tells {
		unmute(g.log.line(deeds)) // all is done: whoever reads it delays nothing
	}
	return code
}

// muteStderr redirects descriptor 2: a pipe that nobody empties would block a guardian in the middle of its work. The
// returned function writes once, if it can without waiting.
func muteStderr() (func(string), error) {
	saved, err := unix.FcntlInt(2, unix.F_DUPFD_CLOEXEC, 10)
	if err != nil {
		return nil, err
	}
	null, err := unix.Open(os.DevNull, unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	if err := unix.Dup3(null, 2, 0); err != nil {
		return nil, err
	}
	return func(text string) {
		fds := []unix.PollFd{{Fd: int32(saved), Events: unix.POLLOUT}}
		if n, err := unix.Poll(fds, 0); err == nil && n == 1 && fds[0].Revents&unix.POLLOUT != 0 {
			_, _ = unix.Write(saved, []byte(text[:min(len(text), 4096)])) // a pipe that is writable takes that much
		}
	}, nil
}

func newGuardian(sock int, duties Duties) (*guardian, error) {
	unix.CloseOnExec(sock)
	buf := make([]byte, wire.MaxPacket)
	wire.PollOne(sock, unix.POLLIN, 5*time.Second)
	setup, err := wire.RecvFD(sock, buf)
	if err != nil || setup.Op != guard.OpSetup {
		return nil, fmt.Errorf("no setup from the supervisor (a guardian is started by it alone): %w", err)
	}
	alarm, err := newAlarm()
	if err != nil {
		return nil, err
	}
	closing, err := newClosing(duties.Close)
	if err != nil {
		return nil, err
	}
	// A program that hangs in exec still has its copy of the supervisor's sockets: then they never reach end of file.
	held, err := unix.PidfdOpen(os.Getppid(), 0)
	if err != nil {
		return nil, fmt.Errorf("open a pidfd of the supervisor: %w", err)
	}
	g := &guardian{
		above: upLine{sock: sock, parent: os.NewFile(uintptr(held), "supervisor")}, index: setup.Index, alarm: alarm, closing: closing,
		watchdog: -1, buf: buf,
	}
	g.undoing = undoing{undoer: duties.Undo, bell: closing.bell, results: make(chan guard.Undone, 64)}
	g.log.supervisor = os.Getppid()
	if setup.Log != nil {
		g.log.style = *setup.Log
	}
	g.decider = guard.NewGuardian(guard.Config{Index: setup.Index, Grace: setup.Grace}, g)
	g.Tell(&guard.Message{Op: guard.OpAck, Seq: setup.Seq})
	return g, nil
}

func (g *guardian) loop() int {
	for {
		g.above.flush()
		now := g.heard()
		g.alone = g.twin != nil && (g.alone || wire.Readable(int(g.twin.Fd())))
		next, over := g.decider.Turn(now,
			guard.Events{Closed: g.closing.ended(), Undone: g.undoing.ended(), TwinGone: g.alone, Orphaned: g.above.gone})
		if over {
			return 0
		}
		if err := g.alarm.set(next); err != nil {
			return 1
		}
		g.wait()
	}
}

// heard reads the supervisor's messages, and returns a time of which it knows them all. P7: a process that is stopped after it has read
// them must not take what was sent meanwhile for missing.
func (g *guardian) heard() time.Duration {
	const stopped = 50 * time.Millisecond // in less it reads them all
	for tries := 1; ; tries++ {
		began := wire.Now()
		g.hear()
		if now := wire.Now(); now-began < stopped || tries == 3 {
			return now
		}
	}
}

// hear reads the supervisor's messages, at most so many a step that no deadline waits for them.
func (g *guardian) hear() {
	for range 64 {
		if g.above.gone {
			return
		}
		m, err := g.above.receive(g.buf)
		switch {
		case errors.Is(err, unix.EAGAIN):
			return
		case err != nil:
			_ = unix.Shutdown(g.above.sock, unix.SHUT_RDWR) // a supervisor that still lives sees that this guardian no longer relies on it
			return
		}
		g.decider.Hear(wire.Now(), &m)
	}
}

// wait sleeps until there is work.
func (g *guardian) wait() {
	g.polls = append(g.polls[:0],
		unix.PollFd{Fd: int32(g.alarm.fd), Events: unix.POLLIN},
		unix.PollFd{Fd: int32(g.closing.bell), Events: unix.POLLIN},
		unix.PollFd{Fd: -1, Events: unix.POLLIN},
		unix.PollFd{Fd: -1, Events: unix.POLLIN},
		unix.PollFd{Fd: -1, Events: unix.POLLIN})
	if u := &g.above; !u.gone {
		g.polls[2].Fd = int32(u.sock)
		if len(u.unsaid) > 0 {
			g.polls[2].Events |= unix.POLLOUT
		}
		g.polls[4].Fd = int32(u.parent.Fd())
	}
	if g.twin != nil && !g.alone {
		g.polls[3].Fd = int32(g.twin.Fd())
	}
	for b := range g.decider.Dying() {
		p, holds := b.(*heldBox)
		if !holds {
			continue
		}
		if fd, events, _ := p.Wake(); fd >= 0 {
			g.polls = append(g.polls, unix.PollFd{Fd: int32(fd), Events: events})
		}
	}
	_, _ = unix.Poll(g.polls, -1)
	if g.polls[0].Revents != 0 {
		g.alarm.rung()
	}
}
