package child

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// dog is a watchdog device as a guardian feeds it. The twin feeds it too, each by itself.
type dog struct {
	fd      int
	food    []byte // which guardian it comes from makes no difference to the device
	timeout time.Duration
	fed     time.Duration // when it was fed last
}

// keepDog takes over the device that came along.
func (g *guardian) keepDog(m *message) error {
	if m.file == nil || m.Grace <= 0 {
		return errors.New("no watchdog came along")
	}
	defer m.file.Close()
	fd := -1
	err := using(m.file, func(lent int) (err error) {
		fd, err = unix.FcntlInt(uintptr(lent), unix.F_DUPFD_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return fmt.Errorf("keep the watchdog: %w", err)
	}
	if g.dog != nil {
		_ = unix.Close(g.dog.fd)
	}
	g.dog = &dog{fd: fd, food: []byte{'1' + byte(g.index)}, timeout: m.Grace}
	return nil
}

// dropDog lets go of the device. Where a tree that it watches over may be alive, it goes on counting, unfed by this guardian.
func (g *guardian) dropDog() {
	if g.dog == nil {
		return
	}
	if _, bound := g.leash(); !bound {
		_, _ = unix.Write(g.dog.fd, farewell)
	}
	_ = unix.Close(g.dog.fd)
	g.dog = nil
}

// leash is when the machine has to have been reset, unless the lease is extended or the trees are proved dead before; not
// bound: there is nothing alive that would need it.
func (g *guardian) leash() (limit time.Duration, bound bool) {
	for _, w := range g.watches {
		for _, q := range w.trees {
			if at := w.deadline + q.after; q.armed && !q.dead && (!bound || at < limit) {
				limit, bound = at, true
			}
		}
	}
	return limit, bound
}

// turn feeds when that is due and says when to look again; zero means at the next event.
//
// P3: a feed keeps the reset away for a whole timeout, so none comes later than that before the limit. The last one comes as
// late as it can be relied on, for a tree that is killed at its lease's end to be proved dead before the limit.
func (d *dog) turn(now, limit time.Duration, bound bool) time.Duration {
	last := limit - d.timeout
	if bound && now > last {
		return 0
	}
	next := func(fed time.Duration) time.Duration {
		due, close := fed+d.timeout/4, last-d.timeout/64
		if bound && close > fed {
			return min(due, close)
		}
		return due
	}
	due := next(d.fed)
	if now < due {
		return due
	}
	_, _ = unix.Write(d.fd, d.food) // there is nobody to tell: the twin tries as well
	d.fed = now
	return next(now)
}

// awaitsReset tells whether what cannot be killed is left to the watchdog.
func (w *watch) awaitsReset(d *dog) bool {
	for _, q := range w.trees {
		if d != nil && q.armed && !q.dead {
			return true
		}
	}
	return false
}

// arm has the machine reset unless the tree is proved dead so long after the lease's end.
func (w *watch) arm(q *quarry, after time.Duration) error {
	if w.ended {
		return ErrLeaseEnded
	}
	q.armed, q.after = true, after
	return nil
}
