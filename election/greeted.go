package election

import (
	"fmt"
	"time"
)

// otherSession is the address of a server that gave a session in place of the one that was asked for.
type otherSession string

func (server otherSession) Error() string {
	return string(server) + " gave another session at a reconnect"
}

// greeted handles each handshake before the client, which sends nothing until greeted returns.
func (s *Session) greeted(h handshake) {
	switch known := s.ID(); {
	case h.session == 0:
		s.Expire(ErrExpired)
		return
	case known != 0 && h.session != known: // P3: the lock of ours ends without a word, while the lease would grow in the other one
		s.Expire(fmt.Errorf("%w: %w", ErrExpired, otherSession(h.server)))
		return
	case known == 0 && h.timeout < s.LeaseLength():
		s.log.Warn("ZooKeeper grants sessions that are shorter than the lease, so even a short outage moves services: "+
			"raise maxSessionTimeout there", "granted", h.timeout, "lease", s.LeaseLength().Round(time.Millisecond))
	}
	s.identify(h.session, h.password)
}
