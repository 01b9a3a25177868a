package election

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"time"

	"understudy/election/jute"
)

// attach keeps a session alive as a stranger can who knows its id: by pings, and nothing else. What it returns ends it.
func (w *world) attach(t Ticket) (leave func()) {
	w.Helper()
	conn, err := w.dial(w.Context(), "")
	if err != nil {
		w.Fatal(err)
	}
	c := caller{conn: conn}
	if alive, err := c.takeOver(t); !alive || err != nil {
		w.Fatalf("the session cannot be taken over: %v %v", alive, err)
	}
	ctx, cancel := context.WithCancel(w.Context())
	read, pinged := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(read)
		for {
			if _, err := jute.ReadFrame(conn, maxFrame); err != nil {
				return
			}
		}
	}()
	go func() {
		defer close(pinged)
		for ctx.Err() == nil {
			if _, err := conn.Write(jute.Frame(jute.RequestHeader{Xid: -2, Op: jute.OpPing})); err != nil {
				return
			}
			select {
			case <-time.After(testTick):
			case <-ctx.Done():
			}
		}
	}()
	return func() {
		cancel()
		conn.Close()
		<-read
		<-pinged
	}
}

// desert has a node do something in a session, and then be dead, while a stranger keeps the session.
func (w *world) desert(cfg Config, f func(ctx context.Context, s *Session) error) (session int64, leave func()) {
	w.Helper()
	var ticket Ticket
	gone := errors.New("gone")
	e := New(cfg)
	err := e.Open(w.Context(), func(ctx context.Context, s *Session) error {
		if err := f(ctx, s); err != nil {
			return err
		}
		ticket = s.Ticket()
		return gone
	})
	e.Wait()
	if !errors.Is(err, gone) {
		w.Fatal(err)
	}
	return ticket.Session, w.attach(ticket)
}

// twoTimeouts demands that something happens between two and, since a look is taken once in a session timeout, a little more than three timeouts.
func (w *world) twoTimeouts(what string, took, session time.Duration) {
	w.Helper()
	if took < 2*session || took > 3*session+testTick {
		w.Errorf("%s after %v, with sessions of %v", what, took, session)
	}
}

// holder has a lock for as long as it is not told to leave, and goes on although it is cut off.
type holder struct {
	away  atomic.Bool
	cable *dialer
	leave func()
}

// unplug cuts it off.
func (h *holder) unplug() {
	h.away.Store(true)
	h.cable.kick()
}

// holds has a node become active whose session does not end.
func (w *world) holds(node string) *holder {
	w.Helper()
	h := &holder{}
	cfg := w.config(node)
	cfg.Dial = func(ctx context.Context, address string) (net.Conn, error) {
		if h.away.Load() {
			return nil, errors.New("its own network is gone")
		}
		return w.dial(ctx, address)
	}
	active, leaving, gone := make(chan int64), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		e := New(cfg)
		err := e.Open(w.Context(), func(ctx context.Context, s *Session) error {
			cl, err := activate(ctx, s)
			if err != nil {
				return err
			}
			h.cable = s.dialer
			s.ExtendByPromises(w.now() + 20*testTimeout)
			active <- s.ID()
			<-leaving
			return cl.Release(ctx)
		})
		e.Wait()
		if err != nil {
			w.Errorf("%s: %v", node, err)
		}
	}()
	end := w.zk.Keep(<-active)
	h.leave = func() {
		close(leaving)
		<-gone
		end()
	}
	return h
}

// clears has a session delete what is stale, until the function returned is called.
func clears(ctx context.Context, s *Session) (enough func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.ClearStale(ctx)
	}()
	return func() {
		cancel()
		<-ended
	}
}
