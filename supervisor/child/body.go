package child

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Kinds of containment, best first.
const (
	KindCgroup = "cgroup" // a cgroup v2 leaf: the kernel kills all of it at once
	KindPidNS  = "pidns"  // a PID namespace: its init dies, the kernel kills all of it
	KindWalk   = "walk"   // a subreaper and walks of /proc: the last resort
)

// ErrUnproved says that a death was ordered but not proved. It never means dead.
var ErrUnproved = errors.New("death not proved")

// body is a process or container that can be killed whole.
type body interface {
	// order orders the death of everything in it. It neither waits nor looks, because other orders follow it.
	order() error
	// strike is order, and also kills processes that order may leave out, if it finds them. It does not wait.
	strike() error
	// insist kills processes that repeated strikes do not end. It does not wait, and each call does a bounded part of the work.
	insist() error
	// seal keeps late processes from running, as far as possible, while remove cannot work yet.
	seal()
	// dead looks, without waiting. Only (true, nil) is proof, and it stays true once the body is removed.
	dead() (bool, error)
	// remove removes the container, so that a late fork fails. It fails while a process lives in it.
	remove() error
	// wake returns the descriptor to poll for news of the death, and the longest time until the next look.
	wake() (fd int, events int16, patience time.Duration)
	close()
}

// ErrNotSeen says that no live process of a tree was found. That is no proof: the lease of its supervisor has to end first.
var ErrNotSeen = errors.New("no live process is seen")

// look is one step of killing: it strikes until the body is proved dead, and then removes it if told to.
func look(b body, remove bool) (bool, error) {
	dead, err := b.dead()
	if err != nil {
		return false, err
	}
	if !dead {
		err := b.strike()
		if remove { // P3
			b.seal()
		}
		return false, errors.Join(err, b.insist())
	}
	if !remove {
		return true, nil
	}
	if err := b.remove(); err != nil {
		return false, errors.Join(err, b.strike()) // a process came in between
	}
	return true, nil
}

// killUntilDead kills until death is proved, and (P2) returns nil only then.
func killUntilDead(ctx context.Context, b body, remove bool) error {
	// P2: order the death even if the context has ended.
	err := b.strike()
	for {
		dead, looked := look(b, remove)
		if dead {
			return nil
		}
		if looked != nil {
			err = looked
		}
		if ctx.Err() != nil {
			return errors.Join(fmt.Errorf("%w: %w", ErrUnproved, context.Cause(ctx)), err)
		}
		fd, events, patience := b.wake()
		rest(fd, events, min(patience, 20*time.Millisecond))
	}
}

// pollOne waits for events on fd. A descriptor below zero is only a wait.
func pollOne(fd int, events int16, patience time.Duration) {
	fds := []unix.PollFd{{Fd: int32(fd), Events: events}}
	for until := Now() + patience; ; patience = max(0, until-Now()) {
		ts := unix.NsecToTimespec(int64(patience))
		if _, err := unix.Ppoll(fds, &ts, nil); err != unix.EINTR {
			return
		}
	}
}

// readable looks at a descriptor without waiting.
func readable(fd int) bool {
	fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	n, err := unix.Poll(fds, 0)
	return err == nil && n == 1 && fds[0].Revents&unix.POLLIN != 0
}

// using lends a file's descriptor: a Close meanwhile waits, so that its number cannot come to mean another process.
func using(f *os.File, do func(fd int) error) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var done error
	if err := conn.Control(func(fd uintptr) { done = do(int(fd)) }); err != nil {
		return fmt.Errorf("%w: %w", os.ErrClosed, err) // the only reason there is
	}
	return done
}

// ready is readable for a file that may be closed meanwhile.
func ready(f *os.File) (is bool, err error) {
	err = using(f, func(fd int) error {
		is = readable(fd)
		return nil
	})
	return is, err
}
