package zkfaults

import (
	"maps"
	"slices"
	"time"
)

// followership is a server's part while it follows. The ensemble's lock guards it.
type followership struct {
	m       *member
	heard   time.Time               // from the leader
	holds   int64                   // what the leader says
	touched map[int64]time.Duration // signs of life that the leader has not been told of
}

// clear forgets all signs of life.
func (f *followership) clear() { f.touched = map[int64]time.Duration{} }

// hear takes the leader's word for what holds.
func (f *followership) hear(zxid int64) { f.heard, f.holds = time.Now(), zxid }

func (f *followership) answerPulse(l *member) {
	f.heard = time.Now()
	signs := f.touched
	f.clear()
	f.m.send(l, func() {
		l.lead.alive[f.m] = time.Now()
		for _, id := range slices.Sorted(maps.Keys(signs)) {
			l.lead.keep(id, signs[id])
		}
		l.s.alarms.armExpiry()
	})
}

// watch makes sure that a follower notices when its leader is silent.
func (f *followership) watch() {
	m := f.m
	if m.beat != nil {
		m.beat.Stop()
	}
	term := m.term // the alarm is left to ring when there was word meanwhile
	m.beat = time.AfterFunc(time.Until(f.heard.Add(m.e.patience()+1)), func() {
		m.e.mu.Lock()
		defer m.e.mu.Unlock()
		if m.role != following || m.term != term {
			return
		}
		if time.Since(f.heard) <= m.e.patience() {
			f.watch()
			return
		}
		m.s.log.Info("server has lost its leader", "server", m.index+1)
		m.leave(false)
	})
}
