package child

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

const (
	closeHeadStart = 250 * time.Millisecond // what the second guardian leaves to the first
	closeAnyway    = 200 * time.Millisecond // after this, what is proved is released without waiting for the rest
	closeGiveUp    = 30 * time.Second
	strikeSlower   = time.Second
	hopeless       = 10 * time.Minute // after the supervisor: what SIGKILL has not ended by then, it does not end
)

// watch is one epoch as a guardian sees it: a lease, and the trees that may live under it.
type watch struct {
	epoch     uint64
	ticket    []byte
	deadline  time.Duration // 0: no lease has arrived
	trees     map[uint64]*quarry
	ended     bool
	endedAt   time.Duration
	closeAt   time.Duration // not before this
	told      int           // how many deaths the newest closing was told of
	busy      bool          // a closing is under way
	closed    bool          // closed with every death proved
	relict    bool          // it was over when this guardian first heard of it, and ends once all its trees are known
	forgotten bool          // the supervisor has nothing to do with it any more
}

// quarry is one tree to be killed when the lease ends.
type quarry struct {
	release []byte
	mark    string // of a tree that has no cgroup
	bodies  []prey
	dead    bool
	tries   int
	armed   bool          // the watchdog is for it
	after   time.Duration // the lease's end: until then its death has to be proved
}

// prey is a body, and what the supervisor calls it.
type prey struct {
	body
	ref  bodyRef
	gone bool // proved dead: its descriptor would bring news of that for ever
}

// obey does what concerns the trees of an epoch that may have ended.
func (w *watch) obey(m *message) error {
	switch m.Op {
	case opExtend:
		if w.ended {
			return ErrLeaseEnded
		}
		w.deadline = max(w.deadline, m.Deadline)
		return nil
	case opShorten:
		if w.ended {
			return ErrLeaseEnded
		}
		if w.deadline > 0 {
			w.deadline = min(w.deadline, m.Deadline)
		}
		for _, q := range w.trees {
			q.after = min(q.after, m.Grace)
		}
		return nil
	case opTree:
		if w.ended {
			return ErrLeaseEnded
		}
		if w.trees[m.Tree] != nil { // P2: what is in it would be lost sight of
			return errors.New("the tree is known already")
		}
		q := &quarry{release: slices.Clone(m.Release), mark: m.Mark}
		if m.Body != nil {
			b, err := openBody(m.Body, nil)
			switch {
			case err == nil:
				q.bodies = append(q.bodies, prey{body: b, ref: *m.Body})
			case m.Body.Kind != KindCgroup || !vanished(m.Body.Path): // P3: else it holds what has left the cgroup, and follows
				return err
			}
		}
		w.trees[m.Tree] = q
		return nil
	}
	q := w.trees[m.Tree]
	if q == nil {
		return errors.New("no such tree")
	}
	switch m.Op {
	case opStub:
		if w.ended {
			return ErrLeaseEnded
		}
		if w.deadline == 0 {
			return ErrNoLease
		}
		b, err := openBody(m.Body, m.file)
		if err != nil {
			return err
		}
		q.bodies = append(q.bodies, prey{body: b, ref: *m.Body})
		return nil
	case opArm:
		return w.arm(q, m.Grace)
	case opShed:
		q.shed(m.Body)
		return nil
	case opDrop:
		q.shut()
		q.dead = true
		if !w.ended { // an ended epoch still needs the release
			delete(w.trees, m.Tree)
		}
		return nil
	}
	return fmt.Errorf("unknown order %q", m.Op)
}

// openBody opens what another process named. It fails rather than opening anything else of the same name.
func openBody(ref *bodyRef, witness *os.File) (body, error) {
	if ref == nil {
		return nil, errors.New("no body is named")
	}
	if ref.Kind == KindCgroup {
		return openLeaf(ref.Path, ref.Inode)
	}
	held, err := holdProcess(ref.Pid, ref.Start)
	if err != nil {
		return nil, err
	}
	if held == nil {
		return nil, fmt.Errorf("process %d is gone", ref.Pid)
	}
	if ref.Kind == KindPidNS {
		return &initBody{pidfd: held}, nil
	}
	if witness == nil {
		return nil, errors.Join(errors.New("stub without a witness"), held.Close())
	}
	return &walkBody{pid: ref.Pid, pidfd: held, witness: witness}, nil
}

// end orders every death at once, before looking at any.
func (w *watch) end(now time.Duration, index int, first bool) {
	w.ended, w.relict, w.endedAt, w.closeAt = true, false, now, now
	if index > 0 && !first {
		w.closeAt = now + closeHeadStart
	}
	for _, leaves := range []bool{false, true} { // what is held first: an order to a cgroup may wait for the kernel
		for _, q := range w.trees {
			for _, b := range q.bodies {
				if (b.ref.Kind == KindCgroup) == leaves {
					_ = b.order() // looked at, and struck, in kill
				}
			}
		}
	}
}

// kill does one turn of killing and says when the next is due.
func (w *watch) kill(now time.Duration) (next time.Duration) {
	for _, q := range w.trees {
		if q.dead {
			continue
		}
		q.dead, q.tries = true, q.tries+1
		patience := strikeSlower
		for i := range slices.Backward(q.bodies) { // the leaf is the first: it goes when nothing lives of what was forked into it
			b := &q.bodies[i]
			if b.gone {
				continue
			}
			remove := q.dead || b.ref.Kind != KindCgroup
			dead, err := look(b, remove)
			if dead && remove {
				b.gone = true
				continue
			}
			if !remove {
				b.seal()
			}
			q.dead = false // P2: an unproved death is tried again
			if errors.Is(err, errMore) {
				q.tries = 0
			}
			_, _, soon := b.wake()
			patience = min(patience, soon)
		}
		if q.dead {
			continue
		}
		if q.tries > 200 {
			patience = strikeSlower
		}
		if at := now + patience; next == 0 || at < next {
			next = at
		}
	}
	return next
}

// close starts the closing of the session when there is something new to tell it, and says when to look again.
func (w *watch) close(now time.Duration, c *closing) time.Duration {
	if w.busy || w.closed || len(w.ticket) == 0 {
		return 0
	}
	if now < w.closeAt && !c.isFirst {
		return w.closeAt
	}
	var releases [][]byte
	for _, q := range w.trees {
		if q.dead {
			releases = append(releases, q.release)
		}
	}
	allDead := len(releases) == len(w.trees)
	if !allDead {
		if now < w.endedAt+closeAnyway {
			return w.endedAt + closeAnyway
		}
		if len(releases) <= w.told {
			return 0
		}
	}
	w.busy, w.told = true, len(releases)
	// P2: only what is proved dead is released.
	c.start(order{epoch: w.epoch, ticket: w.ticket, releases: releases, allDead: allDead})
	return 0
}

func (w *watch) allDead() bool {
	for _, q := range w.trees {
		if !q.dead {
			return false
		}
	}
	return true
}

// settled: all are dead, and the session is closed or given up.
func (w *watch) settled() bool {
	return w.allDead() && !w.busy && (w.closed || len(w.ticket) == 0)
}

// polls adds what brings news of the deaths.
func (w *watch) polls(fds []unix.PollFd) []unix.PollFd {
	if !w.ended {
		return fds
	}
	for _, q := range w.trees {
		if q.dead {
			continue
		}
		for _, b := range q.bodies {
			if fd, events, _ := b.wake(); fd >= 0 && !b.gone {
				fds = append(fds, unix.PollFd{Fd: int32(fd), Events: events})
			}
		}
	}
	return fds
}

// shed lets go of one body, which is proved dead.
func (q *quarry) shed(ref *bodyRef) {
	q.bodies = slices.DeleteFunc(q.bodies, func(p prey) bool {
		is := ref != nil && p.ref == *ref
		if is {
			p.close()
		}
		return is
	})
}

func (q *quarry) shut() {
	for _, b := range q.bodies {
		b.close()
	}
	q.bodies = nil
}

func (w *watch) shut() {
	for _, q := range w.trees {
		q.shut()
	}
}
