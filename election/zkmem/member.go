package zkmem

import (
	"slices"
	"sync"
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
	term  int   // grows each time it leaves
	epoch int64 // of the newest leader that it knew: it joins no older one
	log   history
	beat  *time.Timer // what it does again and again in its role
	lead  leadership

	leader  *member
	heard   time.Time               // from the leader
	holds   int64                   // what the leader says
	touched map[int64]time.Duration // signs of life that the leader has not been told of
	waiting []*request              // of this server's clients
}

// request is a client's, waiting for its turn in the log.
type request struct {
	m     *member
	over  bool
	holds bool // it was carried out
	came  time.Time
	ended *sync.Cond
	reply func(record jute.Record, code jute.Code)
}

func (m *member) serves() bool { return m == nil || m.role == leading || m.role == following }

func (m *member) leads() bool { return m == nil || m.role == leading }

// touch notes a sign of life. Only the leader's own clients are known to the leader at once.
func (m *member) touch(session int64, timeout time.Duration) bool {
	if m.role == leading {
		return m.lead.keep(session, timeout)
	}
	m.touched[session] = timeout // whether there is such a session, only the leader knows
	return true
}

// admits gets a new session, or has the leader say whether an old one lives. served is false when there is no leader, or no
// client any more.
func (m *member) admits(x exchange, hello jute.ConnectRequest) (lives, served bool) {
	c, r := x.c, m.request(func(jute.Record, jute.Code) {})
	if hello.SessionID == 0 {
		timeout := c.timeout
		r.reply = func(record jute.Record, _ jute.Code) { c.session = int64(record.(sessionID)) }
		m.submit(&entry{kind: entryOpen, timeout: timeout, origin: r})
	} else {
		session, timeout := hello.SessionID, c.timeout
		m.ask(func(l *member) {
			if lives = l.lead.keep(session, timeout); lives {
				l.lead.owner[session] = m.index
				x.granted()
				l.s.alarms.armExpiry() // its end may be sooner than before
			}
		}, r)
	}
	m.await(r)
	return lives, r.holds && !c.over
}

// sessionID is the result of opening a session.
type sessionID int64

// Encode implements jute.Record.
func (sessionID) Encode(*jute.Writer) {}

// ask has the leader do something, and ends the request when its word is back.
func (m *member) ask(do func(l *member), r *request) {
	if m.role == leading {
		do(m)
		r.finish(true)
		return
	}
	l := m.leader
	m.send(l, func() {
		do(l)
		l.send(m, func() { r.finish(true) })
	})
}

// sync waits until all holds here that the leader had proposed when it was asked: its answer comes after that.
func (m *member) sync() bool {
	r := m.request(nil)
	if m.role == leading {
		m.lead.settle(func() { r.finish(true) })
	} else {
		l := m.leader
		m.send(l, func() { l.lead.settle(func() { l.send(m, func() { r.finish(true) }) }) })
	}
	m.await(r)
	return r.holds
}

// write carries a client's change through the log, and answers it at its place there.
func (m *member) write(x exchange, h jute.RequestHeader, body []byte) {
	c, r := x.c, m.request(nil)
	e := &entry{kind: entryChange, order: decodeOrder(h.Op, body), who: caller{c.session, slices.Clone(c.ids)}, origin: r}
	r.reply = func(record jute.Record, code jute.Code) {
		if code == jute.SessionMoved { // its client has to settle anew where it is
			c.hangUp()
			return
		}
		x.send(h, record, code)
	}
	if h.Op == jute.OpCloseSession {
		e.kind = entryClose
		r.reply = func(_ jute.Record, code jute.Code) {
			m.s.watches.dropAll(c)
			c.send(jute.ReplyHeader{Xid: h.Xid, Zxid: m.s.db.zxid, Code: code})
			c.hangUp()
		}
	}
	m.submit(e)
	m.await(r)
}

func (m *member) request(reply func(jute.Record, jute.Code)) *request {
	r := &request{m: m, came: time.Now(), ended: sync.NewCond(m.e.mu), reply: reply}
	m.waiting = append(m.waiting, r)
	return r
}

// await waits for the end of a request: later ones of its client wait behind it.
func (m *member) await(r *request) {
	for !r.over {
		r.ended.Wait()
	}
}

func (r *request) finish(holds bool) {
	if r.over {
		return
	}
	r.over, r.holds = true, holds
	if i := slices.Index(r.m.waiting, r); i >= 0 {
		r.m.waiting = slices.Delete(r.m.waiting, i, i+1)
	}
	r.ended.Broadcast()
}

// submit brings a change to the leader.
func (m *member) submit(e *entry) {
	if m.role == leading {
		m.lead.accept(e, m.index)
		return
	}
	l := m.leader
	m.send(l, func() { l.lead.accept(e, m.index) })
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
	d.zxid, d.leaders = e.zxid-1, e.now
	var record jute.Record
	code := e.code
	switch {
	case code != jute.OK:
		d.begin()
	case e.kind == entryOpen:
		id := d.openSession(e.timeout)
		record = sessionID(id)
		if m.role == leading {
			m.s.alarms.armExpiry()
			if e.origin != nil {
				m.lead.owner[id] = e.origin.m.index
			}
		}
	case e.kind == entryClose:
		m.s.replica.close(e.who.session, e.expired)
		delete(m.touched, e.who.session)
		delete(m.lead.closing, e.who.session)
		delete(m.lead.owner, e.who.session)
		if c := m.s.clients.of(e.who.session); c != nil && e.expired {
			c.hangUp()
			m.s.watches.dropAll(c)
		}
	default:
		record, code = m.s.carryOut(e.who, e.order)
	}
	d.leaders = 0
	if r := e.origin; r != nil && r.m == m && !r.over {
		r.reply(record, code)
		r.finish(true)
		if e.kind == entryChange && code == jute.OK {
			m.answered(e.who.session, r.came)
		}
	}
}
