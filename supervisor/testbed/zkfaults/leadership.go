package zkfaults

import (
	"slices"
	"time"

	"understudy/election/jute"
	"understudy/election/zkmem"
)

// leadership is a server's part while it leads.
type leadership struct {
	m         *member
	followers []*member // who follows
	acks      map[*member]int64
	alive     map[*member]time.Time
	owner     map[int64]int // the server that a session's client uses
	closing   map[int64]bool
	last      int64 // the newest zxid
	syncs     []pendingSync
}

// join adds a follower, which has all that holds.
func (l *leadership) join(f *member) {
	l.followers = append(l.followers, f)
	l.acks[f], l.alive[f] = l.last, time.Now()
	l.advance()
}

// part drops a follower, if it is one.
func (l *leadership) part(f *member) {
	l.followers = slices.DeleteFunc(l.followers, func(m *member) bool { return m == f })
}

// keep puts off the end of a session, at the leader.
func (l *leadership) keep(session int64, timeout time.Duration) bool {
	return !l.closing[session] && l.m.s.db.touch(session, timeout)
}

// settle does something once all holds that a leader has proposed.
func (l *leadership) settle(do func()) {
	if l.last <= l.m.log.done {
		do()
		return
	}
	l.syncs = append(l.syncs, pendingSync{l.last, do})
}

// pendingSync is what waits for a change that is proposed.
type pendingSync struct {
	zxid int64
	do   func()
}

// expire has the leader end a session.
func (l *leadership) expire(session int64) {
	l.m.s.db.sessions.byID[session].expires = 1 << 62 // once is enough, however long it takes until that holds
	if !l.closing[session] {
		l.accept(&entry{kind: entryClose, who: zkmem.Caller{Session: session}, expired: true}, l.m.index)
	}
}

// accept gives a change its place, and proposes it to the followers.
func (l *leadership) accept(e *entry, from int) {
	session := e.who.Session
	_, known := l.m.s.db.sessions.byID[session]
	owner, owned := l.owner[session]
	switch {
	case e.kind == entryOpen || e.expired:
	case !known || l.closing[session]:
		e.code = jute.SessionExpired
	case owned && owner != from:
		e.code = jute.SessionMoved
	}
	if e.kind == entryClose && e.code == jute.OK {
		l.closing[session] = true
	}
	l.last++
	e.zxid, e.now = l.last, time.Now().UnixMilli()
	l.m.log.entries = append(l.m.log.entries, e)
	for _, f := range l.followers {
		l.m.send(f, func() {
			f.log.entries = append(f.log.entries, e)
			f.apply(f.follows.holds) // its word may have been quicker
			f.send(l.m, func() { l.acked(f, e.zxid) })
		})
	}
	l.advance()
}

func (l *leadership) acked(f *member, zxid int64) {
	l.acks[f] = max(l.acks[f], zxid)
	l.alive[f] = time.Now()
	l.advance()
}

// advance commits changes that a majority has.
func (l *leadership) advance() {
	if l.m.role != leading {
		return
	}
	have := []int64{l.last}
	for _, f := range l.followers {
		if f.part == Voter {
			have = append(have, l.acks[f])
		}
	}
	slices.Sort(have)
	majority := len(l.m.e.voters(nil))/2 + 1
	if len(have) < majority {
		return
	}
	zxid := have[len(have)-majority]
	if zxid <= l.m.log.done {
		return
	}
	l.m.apply(zxid)
	for _, f := range l.followers {
		l.m.send(f, func() {
			f.follows.hear(zxid)
			f.apply(zxid)
		})
	}
	for len(l.syncs) > 0 && l.syncs[0].zxid <= l.m.log.done {
		l.syncs[0].do()
		l.syncs = l.syncs[1:]
	}
	l.m.e.shorten()
}

// hasQuorum tells whether a leader has heard lately from enough followers.
func (l *leadership) hasQuorum() bool {
	voters := l.m.e.voters(nil)
	return l.heard(voters) > len(voters)/2
}

// heard is from how many of these a leader has heard lately, itself among them.
func (l *leadership) heard(of []*member) (n int) {
	for _, m := range of {
		if m == l.m || slices.Contains(l.followers, m) && time.Since(l.alive[m]) < l.m.e.patience() {
			n++
		}
	}
	return n
}

// pulse is what goes on between the servers every half tick: the leader asks its followers, and these tell what signs of
// life they have seen.
func (l *leadership) pulse() {
	if l.m.role != leading || l.m.e.closed {
		return
	}
	if !l.hasQuorum() {
		l.m.s.log.Info("server leads no majority any more", "server", l.m.index+1)
		l.m.leave(false)
		return
	}
	for _, f := range l.followers {
		l.m.send(f, func() { f.follows.answerPulse(l.m) })
	}
	term := l.m.term
	l.m.beat = time.AfterFunc(l.m.e.cfg.TickTime/2, func() {
		l.m.e.mu.Lock()
		defer l.m.e.mu.Unlock()
		if l.m.term == term {
			l.pulse()
		}
	})
}
