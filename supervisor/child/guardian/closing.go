package guardian

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"understudy/supervisor/child/box"
	"understudy/supervisor/guard"
)

const closeGiveUp = 30 * time.Second

// closing runs the closers of sessions in goroutines of their own: the guardian's loop must not wait for a network.
type closing struct {
	closeSession CloseSession
	bell         int // eventfd: a closer has ended
	results      chan guard.Closed
}

func newClosing(closeSession CloseSession) (*closing, error) {
	bell, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("bell: %w", err)
	}
	return &closing{closeSession: closeSession, bell: bell, results: make(chan guard.Closed, 64)}, nil
}

// start begins one closing. The loop waits for its end: ended has the result, and a guardian with a closing under way
// does not end.
func (c *closing) start(o guard.Closing) {
	go func() {
		c.results <- guard.Closed{Closing: o, Err: c.try(o)}
		_ = box.Ring(c.bell)
	}()
}

func (c *closing) try(o guard.Closing) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), closeGiveUp)
	defer cancel()
	defer func() {
		if r := recover(); r != nil { // kills go on after any fault here
			err = fmt.Errorf("closing the session: panic: %v", r)
		}
	}()
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		err = c.closeSession(ctx, o)
		if err == nil {
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

// ended returns the results of closers that have ended.
func (c *closing) ended() (all []guard.Closed) {
	var count [8]byte
	_, _ = unix.Read(c.bell, count[:])
	for {
		select {
		case o := <-c.results:
			all = append(all, o)
		default:
			return all
		}
	}
}
