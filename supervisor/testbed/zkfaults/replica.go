package zkfaults

import (
	"understudy/election/jute"
	"understudy/election/zkmem"
)

// Commit is a transaction that has taken effect.
type Commit struct {
	Zxid    int64
	By      int64    // the session that asked for it, 0 where none did
	Checks  []string // the paths that it checks beside its changes
	Changes []ZnodeChange
	Ended   int64 // the session that ended with it, 0 for none
	Expired bool  // it ended because nothing was heard of it
	Rewound bool  // all is gone that is not in Changes: see Server.Rewind
}

// ZnodeChange is what a transaction did to one node. Data and Stat are as they are after it, and of a deleted node empty.
type ZnodeChange struct {
	Kind jute.EventType
	Path string
	Data []byte
	Stat jute.Stat
}

// replica is one server's copy of the data, and the clients that watch it.
type replica struct {
	db      *database
	watches zkmem.Watches
	observe func(Commit)
	first   func(zxid int64) bool // no other server has told of that transaction; nil: there is no other
}

// observed reports a transaction, with the server's lock held.
func (r *replica) observed(c Commit, changes []zkmem.Change) {
	if r.observe == nil || c.Ended == 0 && len(changes) == 0 || r.first != nil && !r.first(c.Zxid) {
		return
	}
	for _, ch := range changes {
		if ch.Kind == jute.EventNodeChildrenChanged {
			continue
		}
		told := ZnodeChange{Kind: ch.Kind, Path: ch.Path}
		if ch.Kind != jute.EventNodeDeleted {
			told.Data, told.Stat, _ = r.db.Znode(ch.Path)
		}
		c.Changes = append(c.Changes, told)
	}
	r.observe(c)
}

// order is a change with what it checks, which those who are told of it do not see in the data.
type order struct {
	*zkmem.Order
	checks []string
}

func newOrder(op jute.Op, body []byte) order {
	o := order{Order: zkmem.NewOrder(op, body)}
	var multi jute.Multi
	if op == jute.OpMulti && jute.Unmarshal(body, &multi) == nil {
		for _, step := range multi {
			if step.Op == jute.OpCheck {
				o.checks = append(o.checks, step.Target.Path)
			}
		}
	}
	return o
}

// carryOut does what takes a zxid, whether it succeeds or not.
func (r *replica) carryOut(who zkmem.Caller, o order) (jute.Record, jute.Code) {
	record, code, changes := r.db.Do(who, o.Order)
	r.observed(Commit{Zxid: r.db.Zxid, By: who.Session, Checks: o.checks}, changes)
	r.watches.Fire(changes)
	return record, code
}

func (r *replica) read(c *conn, op jute.Op, body []byte) (jute.Record, jute.Code) {
	return r.db.Read(r.watches, c.Client, op, body)
}

// close ends a session with everything that hangs on it.
func (r *replica) close(session int64, expired bool) {
	changes := r.db.closeSession(session)
	r.observed(Commit{Zxid: r.db.Zxid, Ended: session, Expired: expired}, changes)
	r.watches.Fire(changes)
}
