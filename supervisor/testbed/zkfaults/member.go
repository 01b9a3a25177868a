package zkfaults

import (
	"time"

	"understudy/election/jute"
)

// role is a server's role in its ensemble.
type role int

const (
	looking role = iota // for a leader: it has no clients
	following
	leading
	down
)

// member is a server's part in an ensemble. The ensemble's lock guards it.
type member struct {
	e     *Ensemble
	s     *Server
	index int
	role  role
	part  Part
	term  int   // grows each time it leaves
	epoch int64 // of the newest leader that it knew: it joins no older one
	log   history
	beat  *time.Timer // what it does again and again in its role

	leader   *member // who leads it: itself, if it does; nil while it looks for one
	lead     leadership
	follows  followership
	requests requests
}

func (m *member) serves() bool { return m == nil || m.role == leading || m.role == following }

func (m *member) leads() bool { return m == nil || m.role == leading }

// touch notes a sign of life. Only the leader's own clients are known to the leader at once.
func (m *member) touch(session int64, timeout time.Duration) bool {
	if m.role == leading {
		return m.lead.keep(session, timeout)
	}
	m.follows.touched[session] = timeout // whether there is such a session, only the leader knows
	return true
}

// apply carries out the log up to a zxid.
func (m *member) apply(zxid int64) {
	for _, e := range m.log.entries[m.log.after(m.log.done):] {
		if e.zxid > zxid {
			return
		}
		m.carryOut(e)
		m.log.done = e.zxid
	}
}

func (m *member) carryOut(e *entry) {
	d := m.s.db
	d.Zxid, d.Now = e.zxid-1, e.now
	var record jute.Record
	code := e.code
	switch {
	case code != jute.OK:
		d.Skip()
	case e.kind == entryOpen:
		id := d.openSession(e.timeout)
		record = sessionID(id)
		if m.role == leading {
			m.s.alarms.armExpiry()
			if e.origin != nil {
				m.lead.owner[id] = e.origin.of.m.index
			}
		}
	case e.kind == entryClose:
		m.s.replica.close(e.who.Session, e.expired)
		delete(m.follows.touched, e.who.Session)
		delete(m.lead.closing, e.who.Session)
		delete(m.lead.owner, e.who.Session)
		if c := m.s.clients.of(e.who.Session); c != nil && e.expired {
			c.HangUp()
			m.s.watches.Drop(c.Client)
		}
	default:
		record, code = m.s.carryOut(e.who, e.order)
	}
	d.Now = 0
	if r := e.origin; r != nil && r.of == &m.requests && !r.over {
		r.reply(record, code)
		r.finish(true)
		if e.kind == entryChange && code == jute.OK {
			m.answered(e.who.Session, r.came)
		}
	}
}
