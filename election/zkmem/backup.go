package zkmem

import (
	"maps"
	"slices"
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
	s.alarms.armCleaning()
	if s.cfg.Observe == nil {
		return
	}
	all := Commit{Zxid: s.db.zxid, Rewound: true}
	for _, path := range slices.Sorted(maps.Keys(s.db.tree.nodes)) {
		n := s.db.tree.nodes[path]
		all.Changes = append(all.Changes, ZnodeChange{Kind: jute.EventNodeCreated, Path: path, Data: n.data, Stat: n.status()})
	}
	s.cfg.Observe(all)
}

func (d *database) clone() *database {
	c := *d
	c.tree = d.tree.clone()
	table := *d.sessions
	table.byID = map[int64]*session{}
	for id, s := range d.sessions.byID {
		one := *s
		table.byID[id] = &one
	}
	c.sessions, c.timeouts, c.created = &table, maps.Clone(d.timeouts), maps.Clone(d.created)
	return &c
}

func (t *tree) clone() *tree {
	c := &tree{nodes: map[string]*node{}, ephemerals: map[int64]map[string]struct{}{}, containers: maps.Clone(t.containers)}
	for path, n := range t.nodes {
		one := *n
		one.data, one.children = slices.Clone(n.data), maps.Clone(n.children)
		c.nodes[path] = &one
	}
	for id, owned := range t.ephemerals {
		c.ephemerals[id] = maps.Clone(owned)
	}
	return c
}
