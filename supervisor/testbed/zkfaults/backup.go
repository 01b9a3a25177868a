package zkfaults

import (
	"time"

	"understudy/election/jute"
)

// Backup is a copy of all data of a server that is alone.
type Backup struct{ db *database }

// Backup makes one.
func (s *Server) Backup() *Backup {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &Backup{s.db.clone()}
}

// Rewind is what an operator does who starts the server anew with an older copy of its data: connections break, and of the sessions those of
// the copy go on. What is there then is observed as one transaction.
func (s *Server) Rewind(to *Backup) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dropAll()
	next, kept := s.db.sessions.nextID, s.db.sessions.kept
	s.db = to.db.clone()
	s.db.sessions.nextID, s.db.sessions.kept = max(next, s.db.sessions.nextID), kept
	s.db.sessions.revive(func(id int64) time.Duration { return s.db.created[id] })
	s.alarms.armExpiry()
	if s.cfg.Observe == nil {
		return
	}
	all := Commit{Zxid: s.db.Zxid, Rewound: true}
	for _, path := range s.db.Paths() {
		data, stat, _ := s.db.Znode(path)
		all.Changes = append(all.Changes, ZnodeChange{Kind: jute.EventNodeCreated, Path: path, Data: data, Stat: stat})
	}
	s.cfg.Observe(all)
}
