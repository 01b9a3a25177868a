package zkmem

import (
	"maps"
	"slices"
	"time"
)

// lead makes a server the leader of those that are named. What is in its log holds from now on.
func (m *member) lead(party []*member) {
	m.role, m.leader, m.party, m.syncs = leading, m, nil, nil
	m.acks, m.alive = map[*member]int64{}, map[*member]time.Time{}
	m.owner, m.closing, m.touched = map[int64]int{}, map[int64]bool{}, map[int64]time.Duration{}
	if n := len(m.log); n > 0 {
		m.apply(m.log[n-1].zxid)
	}
	m.s.db.zxid = max(m.s.db.zxid, m.e.newest())
	m.s.db.newEpoch()
	m.last, m.done = m.s.db.zxid, m.s.db.zxid
	m.epoch = m.last >> 32
	m.s.db.sessions.revive(func(id int64) time.Duration { return m.s.db.created[id] })
	m.s.armExpiry()
	m.s.log.Info("server leads", "server", m.index+1)
	for _, f := range party {
		f.follow(m)
	}
	m.pulse()
}

// newest is the greatest zxid that any server knows of: no epoch comes twice.
func (e *Ensemble) newest() (zxid int64) {
	for _, m := range e.members {
		zxid = max(zxid, m.s.db.zxid, m.last)
	}
	return zxid
}

// follow joins a leader, and takes over what holds there.
func (m *member) follow(l *member) {
	m.role, m.leader, m.heard, m.holds, m.epoch = following, l, time.Now(), l.done, l.epoch
	m.touched = map[int64]time.Duration{}
	m.log = m.log[:m.applied()]
	for _, e := range l.log {
		if e.zxid > m.done {
			m.log = append(m.log, e)
		}
	}
	m.apply(l.done)
	m.s.db.zxid, m.done = max(m.s.db.zxid, l.done), max(m.done, l.done)
	l.party = append(l.party, m)
	l.acks[m], l.alive[m] = l.last, time.Now()
	m.watchLeader()
	l.advance()
}

// hasQuorum tells whether a leader has heard lately from enough followers.
func (m *member) hasQuorum() bool {
	n := 1
	for _, f := range m.party {
		if time.Since(m.alive[f]) < m.e.patience() {
			n++
		}
	}
	return n > len(m.e.members)/2
}

func (e *Ensemble) patience() time.Duration { return time.Duration(e.opts.SyncLimit) * e.cfg.TickTime }

// pulse is what goes on between the servers every half tick: the leader asks its followers, and these tell what signs of
// life they have seen.
func (m *member) pulse() {
	if m.role != leading || m.e.closed {
		return
	}
	if !m.hasQuorum() {
		m.s.log.Info("server leads no majority any more", "server", m.index+1)
		m.leave(false)
		return
	}
	for _, f := range m.party {
		m.send(f, func() { f.answerPulse(m) })
	}
	term := m.term
	m.beat = time.AfterFunc(m.e.cfg.TickTime/2, func() {
		m.e.mu.Lock()
		defer m.e.mu.Unlock()
		if m.term == term {
			m.pulse()
		}
	})
}

func (m *member) answerPulse(l *member) {
	m.heard = time.Now()
	signs := m.touched
	m.touched = map[int64]time.Duration{}
	m.send(l, func() {
		l.alive[m] = time.Now()
		for _, id := range slices.Sorted(maps.Keys(signs)) {
			l.keep(id, signs[id])
		}
		l.s.armExpiry()
	})
}

// watchLeader makes sure that a follower notices when its leader is silent.
func (m *member) watchLeader() {
	if m.beat != nil {
		m.beat.Stop()
	}
	term := m.term // the alarm is left to ring when there was word meanwhile
	m.beat = time.AfterFunc(time.Until(m.heard.Add(m.e.patience()+1)), func() {
		m.e.mu.Lock()
		defer m.e.mu.Unlock()
		if m.role != following || m.term != term {
			return
		}
		if time.Since(m.heard) <= m.e.patience() {
			m.watchLeader()
			return
		}
		m.s.log.Info("server has lost its leader", "server", m.index+1)
		m.leave(false)
	})
}

// leave parts a server from its ensemble: its clients are dropped, and it looks for a leader, unless it is down.
func (m *member) leave(isDown bool) {
	was := m.role
	party, l := m.party, m.leader
	m.term++
	m.role, m.leader, m.party = looking, nil, nil
	if isDown {
		m.role = down
	}
	if m.beat != nil {
		m.beat.Stop()
	}
	for _, r := range slices.Clone(m.waiting) {
		r.finish(false)
	}
	m.s.dropAll()
	switch was {
	case leading: // those that can be reached learn of it at once
		for _, f := range party {
			if m.e.wire(m.index, f.index).cut == 0 && f.leader == m {
				f.leave(false)
			}
		}
	case following:
		if i := slices.Index(l.party, m); i >= 0 && m.e.wire(m.index, l.index).cut == 0 {
			l.party = slices.Delete(l.party, i, i+1)
			if !l.hasQuorum() {
				l.leave(false)
			}
		}
	}
	m.e.lookSoon()
}

func (m *member) crash() {
	if m != nil {
		m.leave(true)
	}
}

func (m *member) restart() {
	if m.role == down {
		m.role = looking
		m.e.lookSoon()
	}
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
	for _, r := range slices.Clone(m.waiting) {
		r.finish(false)
	}
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
		if l.role != leading || !l.hasQuorum() {
			continue
		}
		for _, m := range free {
			l.party = slices.DeleteFunc(l.party, func(f *member) bool { return f == m })
			if m.role == looking && e.linked(m, l) && l.epoch >= m.epoch {
				m.follow(l)
			}
		}
	}
	slices.SortStableFunc(free, func(a, b *member) int { return int(b.newest() - a.newest()) })
	for _, m := range free {
		if m.role != looking {
			continue
		}
		var party []*member
		for _, f := range free {
			if f != m && f.role == looking && e.linked(m, f) {
				party = append(party, f)
			}
		}
		if len(party)+1 > len(e.members)/2 {
			m.lead(party)
			break
		}
	}
	for _, m := range free {
		again = again || m.role == looking
	}
	return again
}

// newest is the greatest zxid in a server's log.
func (m *member) newest() int64 {
	if n := len(m.log); n > 0 {
		return max(m.done, m.log[n-1].zxid)
	}
	return m.done
}

// shorten drops what all servers have carried out.
func (e *Ensemble) shorten() {
	if len(e.members[0].log) < 2000 {
		return
	}
	all := e.members[0].done
	for _, m := range e.members {
		all = min(all, m.done)
	}
	for _, m := range e.members {
		i, _ := slices.BinarySearchFunc(m.log, all+1, func(e *entry, zxid int64) int { return int(e.zxid - zxid) })
		m.log = slices.Clone(m.log[i:])
	}
}
