package zkmem

import "understudy/election/jute"

// Commit is a transaction that has taken effect.
type Commit struct {
	Zxid    int64
	By      int64 // the session that asked for it, 0 where none did
	Changes []Change
	Ended   int64 // the session that ended with it, 0 for none
	Expired bool  // it ended because nothing was heard of it
}

// Change is what a transaction did to one node. Data and Stat are as they are after it, and of a deleted node empty.
type Change struct {
	Kind jute.EventType
	Path string
	Data []byte
	Stat jute.Stat
}

// observed tells whoever wants to know of a transaction, with the server's lock held.
func (s *Server) observed(c Commit, changes []change) {
	if s.cfg.Observe == nil || c.Ended == 0 && len(changes) == 0 {
		return
	}
	if m := s.member; m != nil { // each server carries it out, the leader first
		if c.Zxid <= m.e.observed {
			return
		}
		m.e.observed = c.Zxid
	}
	for _, ch := range changes {
		if ch.kind == jute.EventNodeChildrenChanged {
			continue
		}
		told := Change{Kind: ch.kind, Path: ch.path}
		if n, ok := s.db.tree.lookup(ch.path); ok && ch.kind != jute.EventNodeDeleted {
			told.Data, told.Stat = n.data, n.status()
		}
		c.Changes = append(c.Changes, told)
	}
	s.cfg.Observe(c)
}
