package election

import (
	"errors"
	"fmt"
	"time"
)

// ErrShortened says that the servers grant a session less than it needs.
var ErrShortened = errors.New("ZooKeeper grants a shorter session timeout than this session can continue with")

// otherSession is the address of a server that gave a session in place of the one that was asked for.
type otherSession string

func (server otherSession) Error() string {
	return string(server) + " gave another session at a reconnect"
}

// Counted is the timeout that a session uses, for lease, heartbeats and all else, if a server has granted it that much, and no
// server ever grants less than floor (0: unknown).
//
// P3: a server that got a connect request may have shortened the session, while its answer is lost, or not read yet. From the
// sending of an acknowledged write to the earliest end of its session it is 7T/12 (see Watchdog). So a grant
// that comes too late to shorten the lease is long enough, unless it is less than that; and floor says that it never is.
func Counted(granted, floor time.Duration) time.Duration {
	if floor > 0 {
		return min(granted, floor*12/7)
	}
	return granted
}

// granted returns why a session cannot continue with a timeout.
func (c *Config) granted(timeout time.Duration) error {
	if timeout < c.Floor {
		return fmt.Errorf("%w: %v, but the config allows none shorter than %v", ErrShortened, timeout, c.Floor)
	}
	if err := CheckTimeout(Counted(timeout, c.Floor)); err != nil {
		return fmt.Errorf("%w: %w", ErrShortened, err)
	}
	return nil
}

// greeted handles each handshake before the client, which sends nothing until greeted returns. Each reconnect negotiates the session's
// timeout anew, within the bounds of that server.
//
// P3: a shorter timeout counts at once, from the sending of the connect request, and both guardians know of it before anything is done
// in the session. A longer one never counts: a new leader gives each session the timeout back that it was opened with, and a previous
// server may still tell its leader of signs of life, with the timeout that it granted. So a session's timeout never grows, and the one
// in a breadcrumb is enough for as long as the session stands.
func (s *Session) greeted(h handshake) {
	switch known := s.ID(); {
	case h.session == 0:
		s.Expire(ErrExpired)
		return
	case known != 0 && h.session != known: // P3: the lock of ours ends without a word, while the lease would grow in the other one
		s.Expire(fmt.Errorf("%w: %w", ErrExpired, otherSession(h.server)))
		return
	}
	counted, refusal := Counted(h.timeout, s.cfg.Floor), s.cfg.granted(h.timeout)
	s.Self.Say(func(n *Node) { n.SessionMs = h.timeout.Milliseconds() })
	was, shorter := s.Lease.grant(h.timeout, counted, h.sent)
	s.identify(h.session, h.password) // last: nobody may use a timeout that is not known yet
	if !shorter && refusal == nil {
		return
	}
	s.dialer.bound(stallLimit(counted))
	if was == 0 {
		if refusal != nil {
			s.Expire(refusal)
		}
		return
	}
	s.log.Warn("a server grants this session a shorter timeout", "was", was, "now", counted, "lease", LeaseLength(counted).Round(time.Millisecond))
	refusal = errors.Join(refusal, s.Lease.shortened(s.dialer.ctx))
	if refusal != nil && s.Over() == nil {
		s.log.Error("the session cannot continue with that, ending it", "error", refusal)
		if !errors.Is(refusal, ErrShortened) {
			refusal = fmt.Errorf("%w: %w", ErrShortened, refusal)
		}
		s.Stop(refusal)
	}
}
