package child

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// CloseSession closes the ZooKeeper session that ticket belongs to, undoing first what each of the releases says. It is
// called only after the trees of all releases are proved dead. Unless allDead, the session itself must be left to expire:
// something of it may be alive. It may be called several times, in several processes.
type CloseSession func(ctx context.Context, ticket []byte, releases [][]byte, allDead bool) error

const guardianMark = " guardian "

// IsGuardian says whether this process was started to be a guardian; then main does nothing but call GuardianMain.
func IsGuardian() bool { return strings.Contains(os.Args[0], guardianMark) }

// guardian is the whole state of a guardian process. Its loop never waits for anything but events: no file system but
// procfs and cgroupfs, no network, no log.
type guardian struct {
	sock     int
	parent   *os.File // pidfd of the supervisor
	index    int
	grace    time.Duration
	twin     *os.File      // pidfd; nil until there is one
	alone    time.Duration // since when the twin is gone; 0: it is there
	orphaned bool          // the supervisor is gone
	alarm    *alarm
	watches  map[uint64]*watch
	closing  *closing
	answers  StandIn
	standIn  *standIn
	dog      *dog // nil: there is none, or none that is needed

	inquiries chan inquiry
	unsaid    []*message // what the supervisor's socket did not take yet
	buf       []byte
	polls     []unix.PollFd
}

// GuardianMain is the main function of a guardian process. It returns when the supervisor is gone, all trees are dead and
// their sessions are closed or given up. answers may be nil.
func GuardianMain(closeSession CloseSession, answers StandIn) (code int) {
	// A terminal's Ctrl-C or a service manager's TERM is for the supervisor; a guardian leaves after it.
	signal.Ignore(unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGPIPE, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2,
		unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU)
	debug.SetGCPercent(25)
	reserveThreads(guardianThreads)
	for _, score := range []string{"-1000", "-500", "0"} {
		if os.WriteFile("/proc/self/oom_score_adj", []byte(score), 0) == nil {
			break
		}
	}
	g, err := newGuardian(guardianSocket, closeSession)
	if err != nil {
		fmt.Fprintln(os.Stderr, "guardian:", err)
		return 1
	}
	g.answers = answers
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
	return g.loop()
}

// muteStderr points descriptor 2 elsewhere: a pipe that nobody empties would hold a guardian up in the middle of its
// work. What it returns writes once, if that can be done without waiting.
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

func newGuardian(sock int, closeSession CloseSession) (*guardian, error) {
	unix.CloseOnExec(sock)
	buf := make([]byte, maxPacket)
	pollOne(sock, unix.POLLIN, 5*time.Second)
	setup, err := recvFD(sock, buf)
	if err != nil || setup.Op != opSetup {
		return nil, fmt.Errorf("no setup from the supervisor (a guardian is started by it alone): %w", err)
	}
	alarm, err := newAlarm()
	if err != nil {
		return nil, err
	}
	closing, err := newClosing(closeSession, setup.Index)
	if err != nil {
		return nil, err
	}
	// A program that hangs in exec still has its copy of the supervisor's sockets: no end of file comes from them then.
	held, err := unix.PidfdOpen(os.Getppid(), 0)
	if err != nil {
		return nil, fmt.Errorf("hold the supervisor: %w", err)
	}
	g := &guardian{
		parent: os.NewFile(uintptr(held), "supervisor"),
		sock:   sock, index: setup.Index, grace: setup.Grace, alarm: alarm,
		watches: make(map[uint64]*watch), closing: closing, buf: buf, inquiries: make(chan inquiry, 16),
	}
	g.tell(&message{Op: opAck, Seq: setup.Seq})
	return g, nil
}

// tell never waits: what a full socket does not take follows when it does.
func (g *guardian) tell(m *message) {
	// An acknowledgement stands for all before it.
	if last := len(g.unsaid) - 1; last >= 0 && m.Op == opAck && g.unsaid[last].Op == opAck {
		g.unsaid[last] = m
	} else {
		g.unsaid = append(g.unsaid, m)
	}
	g.say()
}

// say sends what is to be told, as far as the socket takes it.
func (g *guardian) say() {
	for len(g.unsaid) > 0 && !g.orphaned {
		if err := sendFD(g.sock, g.unsaid[0]); errors.Is(err, unix.EAGAIN) {
			return
		}
		g.unsaid = g.unsaid[1:] // what fails otherwise shows by the supervisor's end
	}
	g.unsaid = nil
}

func (g *guardian) loop() int {
	for {
		next := g.turn(Now())
		if g.orphaned && len(g.watches) == 0 {
			g.dropDog()
			return 0
		}
		if err := g.alarm.set(next); err != nil {
			return 1
		}
		g.wait()
		g.say()
		g.hear()
		g.inquire()
	}
}

// turn does everything that is due and says when to look again; zero means at the next event.
func (g *guardian) turn(now time.Duration) time.Duration {
	if g.twin != nil && g.alone == 0 && readable(int(g.twin.Fd())) {
		g.alone = now
		g.closing.first() // whoever was to close first is gone
	}
	var next time.Duration
	sooner := func(at time.Duration) {
		if at > 0 && (next == 0 || at < next) {
			next = at
		}
	}
	if g.alone > 0 && !g.orphaned {
		if now >= g.alone+g.grace {
			g.endAll("the twin is gone and was not replaced")
		} else {
			sooner(g.alone + g.grace)
		}
	}
	for _, w := range g.watches { // P3: no first order waits for what is looked at of another epoch
		if !w.ended && !w.relict && w.deadline > 0 && now >= w.deadline {
			g.end(w, "the lease ran out")
		}
	}
	for epoch, w := range g.watches {
		if !w.ended {
			if !w.relict {
				sooner(w.deadline)
			}
			continue
		}
		sooner(w.kill(now))
		sooner(w.close(now, g.closing))
		if g.orphaned && (w.settled() || now >= w.endedAt+hopeless && !w.awaitsReset(g.dog)) || w.forgotten && w.settled() {
			w.shut()
			delete(g.watches, epoch)
		} else if g.orphaned && now < w.endedAt+hopeless {
			sooner(w.endedAt + hopeless)
		}
	}
	if g.dog != nil {
		limit, bound := g.leash()
		sooner(g.dog.turn(now, limit, bound))
	}
	return next
}

func (g *guardian) end(w *watch, why string) {
	if w.ended {
		return
	}
	w.end(Now(), g.index, g.orphaned || g.alone > 0)
	g.tell(&message{Op: opEnded, Epoch: w.epoch, Why: why})
}

func (g *guardian) endAll(why string) {
	for _, w := range g.watches {
		g.end(w, why)
	}
}

// wait sleeps until there is something to do.
func (g *guardian) wait() {
	g.polls = append(g.polls[:0],
		unix.PollFd{Fd: int32(g.alarm.fd), Events: unix.POLLIN},
		unix.PollFd{Fd: int32(g.closing.bell), Events: unix.POLLIN},
		unix.PollFd{Fd: -1, Events: unix.POLLIN},
		unix.PollFd{Fd: -1, Events: unix.POLLIN},
		unix.PollFd{Fd: -1, Events: unix.POLLIN})
	if !g.orphaned {
		g.polls[2].Fd = int32(g.sock)
		if len(g.unsaid) > 0 {
			g.polls[2].Events |= unix.POLLOUT
		}
		g.polls[4].Fd = int32(g.parent.Fd())
	}
	if g.twin != nil && g.alone == 0 {
		g.polls[3].Fd = int32(g.twin.Fd())
	}
	for _, w := range g.watches {
		g.polls = w.polls(g.polls)
	}
	_, _ = unix.Poll(g.polls, -1)
	if g.polls[0].Revents != 0 {
		g.alarm.rung()
	}
	if g.polls[1].Revents != 0 {
		g.closing.hear(g.watches, g.tell)
	}
}

// hear takes what the supervisor sent, at most so much a turn that no deadline waits for it.
func (g *guardian) hear() {
	for range 64 {
		if g.orphaned {
			return
		}
		gone := readable(int(g.parent.Fd())) // looked at first: what it said before it died counts
		m, err := recvFD(g.sock, g.buf)
		switch {
		case errors.Is(err, unix.EAGAIN) && !gone:
			return
		case err != nil:
			// P4: whatever is wrong with the line, there is no supervisor behind it that could be relied on.
			g.orphaned = true
			g.standIn.nowAlone()
			g.endAll("the supervisor is gone")
			_ = unix.Shutdown(g.sock, unix.SHUT_RDWR)
			return
		}
		if err := g.obey(&m); err != nil {
			nack := &message{Op: opNack, Seq: m.Seq, Epoch: m.Epoch, Why: err.Error()}
			if m.Op == opTree {
				nack.Tree = m.Tree
			}
			g.tell(nack)
		} else if m.Seq > 0 {
			g.tell(&message{Op: opAck, Seq: m.Seq})
		}
	}
}

var errUnknownEpoch = errors.New("no such epoch")

func (g *guardian) obey(m *message) error {
	switch m.Op {
	case opTwin:
		if m.file == nil {
			return errors.New("twin without a descriptor")
		}
		if g.twin != nil {
			_ = g.twin.Close()
		}
		g.twin, g.alone = m.file, 0
		return nil
	case opHeed:
		return nil
	case opLend:
		return g.lendTo(m)
	case opDog:
		return g.keepDog(m)
	case opUndog:
		g.dropDog()
		return nil
	case opBegin:
		if g.watches[m.Epoch] != nil {
			return errors.New("the epoch has begun before")
		}
		g.watches[m.Epoch] = &watch{
			epoch: m.Epoch, ticket: slices.Clone(m.Ticket), deadline: m.Deadline, relict: m.OK, trees: make(map[uint64]*quarry),
		}
		return nil
	}
	w := g.watches[m.Epoch]
	if w == nil {
		return errUnknownEpoch
	}
	// P3: the deadline counts, not whether its timer has been seen. A later deadline that was sent before this one passed, and
	// is read only now since this process was stopped, is as good as one that was read in time: it says until when, not for
	// how long.
	if m.Op != opExtend && m.Op != opShorten && !w.ended && !w.relict && w.deadline > 0 && Now() >= w.deadline {
		g.end(w, "the lease ran out")
	}
	switch m.Op {
	case opEnd:
		g.end(w, m.Why)
	case opFinish:
		w.forgotten = true
		if !w.ended && len(w.trees) > 0 {
			g.end(w, "finished with trees left") // P2: nothing is forgotten alive
		} else if !w.ended {
			delete(g.watches, m.Epoch)
		}
	default:
		return w.obey(m)
	}
	return nil
}
