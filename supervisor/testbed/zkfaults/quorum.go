package zkfaults

import (
	"slices"
	"time"
)

// takeLead makes a server the leader of those that are named. Its log holds from now on.
func (m *member) takeLead(followers []*member) {
	m.role, m.leader = leading, m
	m.follows.clear()
	m.lead = leadership{m: m, acks: map[*member]int64{}, alive: map[*member]time.Time{}, owner: map[int64]int{}, closing: map[int64]bool{}, last: m.lead.last}
	m.apply(m.log.newest())
	m.s.db.Zxid = max(m.s.db.Zxid, m.e.newest())
	m.s.db.newEpoch()
	m.lead.last, m.log.done = m.s.db.Zxid, m.s.db.Zxid
	m.epoch = m.log.done >> 32
	m.s.db.sessions.revive(func(id int64) time.Duration { return m.s.db.created[id] })
	m.s.alarms.armExpiry()
	m.s.log.Info("server leads", "server", m.index+1)
	for _, f := range followers {
		f.follow(m)
	}
	m.lead.pulse()
}

// newest is the greatest zxid that any server knows of: no epoch comes twice.
func (e *Ensemble) newest() (zxid int64) {
	for _, m := range e.members {
		zxid = max(zxid, m.s.db.Zxid, m.lead.last)
	}
	return zxid
}

// follow joins a leader, and takes over its changes.
func (m *member) follow(l *member) {
	m.role, m.leader, m.epoch = following, l, l.epoch
	m.follows.hear(l.log.done)
	m.follows.clear()
	m.log.join(&l.log)
	m.apply(l.log.done)
	m.s.db.Zxid, m.log.done = max(m.s.db.Zxid, l.log.done), max(m.log.done, l.log.done)
	m.follows.watch()
	l.lead.join(m)
}

func (e *Ensemble) patience() time.Duration { return time.Duration(e.opts.SyncLimit) * e.cfg.TickTime }

// leave parts a server from its ensemble: its clients are dropped, and it looks for a leader, unless it is down.
func (m *member) leave(isDown bool) {
	was := m.role
	followers, l := m.lead.followers, m.leader
	m.term++
	m.role, m.leader, m.lead.followers = looking, nil, nil
	if isDown {
		m.role = down
	}
	if m.beat != nil {
		m.beat.Stop()
	}
	m.requests.giveUp()
	m.s.dropAll()
	switch was {
	case leading: // those that can be reached learn of it at once
		for _, f := range followers {
			if m.e.wire(m.index, f.index).cut == 0 && f.leader == m {
				f.leave(false)
			}
		}
	case following:
		if slices.Contains(l.lead.followers, m) && m.e.wire(m.index, l.index).cut == 0 {
			l.lead.part(m)
			if !l.lead.hasQuorum() {
				l.leave(false)
			}
		}
	}
	m.e.lookSoon()
}

func (m *member) end() {
	if m == nil {
		return
	}
	if m.beat != nil {
		m.beat.Stop()
	}
	m.term++
	m.role = down
	m.requests.giveUp()
}

// lookSoon has those that look for a leader find one, after the time that an election takes.
func (e *Ensemble) lookSoon() {
	if e.closed {
		return
	}
	if e.looking != nil {
		e.looking.Stop()
	}
	e.looking = time.AfterFunc(e.cfg.TickTime/4, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		if !e.closed && e.elect() {
			e.lookSoon()
		}
	})
}

// linked tells whether two servers reach each other.
func (e *Ensemble) linked(a, b *member) bool {
	return e.wire(a.index, b.index).cut == 0 && e.wire(b.index, a.index).cut == 0
}

// elect brings those that look for a leader to one. It tells whether somebody still looks.
func (e *Ensemble) elect() (again bool) {
	var free []*member
	for _, m := range e.members {
		if m.role == looking {
			free = append(free, m)
		}
	}
	for _, l := range e.members {
		if l.role != leading || !l.lead.hasQuorum() {
			continue
		}
		for _, m := range free {
			l.lead.part(m)
			if m.role == looking && e.linked(m, l) && l.epoch >= m.epoch {
				m.follow(l)
			}
		}
	}
	slices.SortStableFunc(free, func(a, b *member) int { return int(b.log.newest() - a.log.newest()) })
	for _, m := range free {
		if m.role != looking {
			continue
		}
		var followers []*member
		for _, f := range free {
			if f != m && f.role == looking && e.linked(m, f) {
				followers = append(followers, f)
			}
		}
		if voters := e.voters(nil); m.part == Voter && votes(followers)+1 > len(voters)/2 {
			m.takeLead(followers)
			break
		}
	}
	for _, m := range free {
		again = again || m.role == looking
	}
	return again
}

func votes(of []*member) (n int) {
	for _, m := range of {
		if m.part == Voter {
			n++
		}
	}
	return n
}

// shorten drops changes that all servers have carried out.
func (e *Ensemble) shorten() {
	if len(e.members[0].log.entries) < 2000 {
		return
	}
	all := e.members[0].log.done
	for _, m := range e.members {
		all = min(all, m.log.done)
	}
	for _, m := range e.members {
		m.log.drop(all)
	}
}
