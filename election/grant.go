package election

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// ErrShortened says that the servers grant a session less than it can go on with.
var ErrShortened = errors.New("ZooKeeper grants a shorter session timeout than this session can go on with")

// Counted is the timeout that a session counts with, for lease, heartbeats and all else, when a server has granted it that much, and
// no server ever grants less than floor (0: nobody says so).
//
// P3: a server that was sent a connect request may have shortened the session, and its answer may be lost, or not read yet. From the
// sending of an acknowledged write to the earliest end of its session it is 7T/12 (see Watchdog). So whatever is granted is long
// enough for a lease that it comes too late for, unless it is less than that; and the floor has it never be less.
func Counted(granted, floor time.Duration) time.Duration {
	if floor > 0 {
		return min(granted, floor*12/7)
	}
	return granted
}

// granted tells why a session cannot go on with what a server grants it.
func (c *Config) granted(timeout time.Duration) error {
	if timeout < c.Floor {
		return fmt.Errorf("%w: %v, and the config says that none is shorter than %v", ErrShortened, timeout, c.Floor)
	}
	if err := CheckTimeout(Counted(timeout, c.Floor)); err != nil {
		return fmt.Errorf("%w: %w", ErrShortened, err)
	}
	return nil
}

// greeted sees each handshake before the client does, which sends nothing before it returns. Each reconnect negotiates the session's
// timeout anew, within the bounds of that server.
//
// P3: what is granted less counts at once, from when it was asked for, and before anything is done in the session both guardians know
// of it. What is granted more never counts: a new leader gives each session the timeout back that it was opened with, and a former
// server may still tell its leader of signs of life, with the timeout that it granted. So a session's timeout never grows, and what a
// breadcrumb says of it is enough for as long as the session stands.
func (s *Session) greeted(h handshake) {
	s.mu.Lock()
	if h.session == 0 {
		s.finish(ErrExpired)
		s.mu.Unlock()
		return
	}
	s.id, s.password = h.session, h.password
	s.longest = max(s.longest, h.timeout)
	if ms := h.timeout.Milliseconds(); s.node.SessionMs != ms {
		s.node.SessionMs, s.described = ms, nil
	}
	was, now := s.timeout, Counted(h.timeout, s.cfg.Floor)
	refusal := s.cfg.granted(h.timeout)
	if was > 0 && now >= was && refusal == nil {
		s.mu.Unlock()
		return
	}
	s.timeout = now
	s.dialer.bound(stallLimit(now))
	if was == 0 {
		if refusal != nil {
			s.finish(refusal)
		}
		s.mu.Unlock()
		return
	}
	if s.end > 0 {
		s.end = min(s.end, h.sent+LeaseLength(now))
	}
	shorten := s.shorten
	s.mu.Unlock()

	s.log.Warn("a server grants this session a shorter timeout", "was", was, "now", now, "lease", LeaseLength(now).Round(time.Millisecond))
	select {
	case s.shorter <- struct{}{}:
	default:
	}
	if shorten != nil {
		refusal = errors.Join(refusal, shorten(s.dialer.ctx))
	}
	if refusal != nil && s.Over() == nil {
		s.log.Error("the session cannot go on with that, and is ended", "error", refusal)
		if !errors.Is(refusal, ErrShortened) {
			refusal = fmt.Errorf("%w: %w", ErrShortened, refusal)
		}
		s.kill(refusal)
	}
}

// Longest is the longest timeout that a session of this configuration may have been granted, as far as is known here: what the
// session of somebody who has not said so is taken to have.
func (s *Session) Longest() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.longest
}

// Shorten has f take a lease that has become shorter to whoever relies on its end: LeaseEnd is it already. What is done in the
// session waits for f, and when it fails, the session is ended.
func (s *Session) Shorten(f func(context.Context) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shorten = f
}
