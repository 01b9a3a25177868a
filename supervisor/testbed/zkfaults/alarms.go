package zkfaults

import (
	"fmt"
	"time"
)

// alarms have a server look when a session may end. The server's lock guards it.
type alarms struct {
	s       *Server
	expiry  *time.Timer
	looksAt time.Time // when expiry rings
}

func (a *alarms) stop() {
	if a.expiry != nil {
		a.expiry.Stop()
		a.expiry = nil
	}
}

// armExpiry makes sure that somebody looks when the next session may end. An alarm that rings earlier is left.
func (a *alarms) armExpiry() {
	wait, ok := a.s.db.sessions.next()
	at := time.Now().Add(wait)
	if a.expiry != nil && ok && !at.Before(a.looksAt) {
		return
	}
	if a.expiry != nil {
		a.expiry.Stop()
		a.expiry = nil
	}
	if ok && !a.s.closed && !a.s.down && a.s.member.leads() {
		a.expiry, a.looksAt = time.AfterFunc(wait, a.expire), at
	}
}

func (a *alarms) expire() {
	s := a.s
	var due []int64
	defer func() {
		for _, id := range due {
			s.log.Info("session expired", "session", fmt.Sprintf("%#x", id))
		}
	}()
	s.mu.Lock()
	defer s.mu.Unlock()
	a.expiry = nil
	if s.closed || s.down || !s.member.leads() {
		return
	}
	due = s.db.sessions.due()
	for _, id := range due {
		if s.member != nil {
			s.member.lead.expire(id)
		} else {
			s.endSession(id)
		}
	}
	a.armExpiry()
}
