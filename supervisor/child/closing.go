package child

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// closing runs the closers of sessions beside the guardian's loop, which must not wait for a network.
type closing struct {
	closeSession CloseSession
	isFirst      bool // close without leaving the other guardian a head start
	bell         int  // eventfd: a closer has ended
	results      chan order
}

type order struct {
	epoch    uint64
	ticket   []byte
	releases [][]byte
	allDead  bool
	err      error
}

func newClosing(closeSession CloseSession, index int) (*closing, error) {
	bell, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("bell: %w", err)
	}
	return &closing{closeSession: closeSession, isFirst: index == 0, bell: bell, results: make(chan order, 64)}, nil
}

func (c *closing) first() { c.isFirst = true }

// start begins one closing. The loop waits for its end: hear takes the result, and a guardian with a closing under way
// does not leave.
func (c *closing) start(o order) {
	go func() {
		o.err = c.try(o)
		c.results <- o
		_ = raiseWitness(c.bell)
	}()
}

func (c *closing) try(o order) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), closeGiveUp)
	defer cancel()
	defer func() {
		if r := recover(); r != nil { // the killing goes on whatever happens here
			err = fmt.Errorf("closing the session: panic: %v", r)
		}
	}()
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		if err = c.closeSession(ctx, o.ticket, o.releases, o.allDead); err == nil {
			return nil
		}
		again := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			again.Stop()
			return err
		case <-again.C:
		}
	}
}

// hear takes the results of closers that have ended.
func (c *closing) hear(watches map[uint64]*watch, tell func(*message)) {
	var count [8]byte
	_, _ = unix.Read(c.bell, count[:])
	for {
		select {
		case o := <-c.results:
			m := &message{Op: opCloser, Epoch: o.epoch, OK: o.err == nil}
			if o.err != nil {
				m.Why = o.err.Error()
			}
			tell(m)
			if w := watches[o.epoch]; w != nil {
				w.busy = false
				w.closed = w.closed || o.allDead // given up counts: the session expires by itself
			}
		default:
			return
		}
	}
}
