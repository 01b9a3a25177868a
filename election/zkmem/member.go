package zkmem

import (
	"slices"
	"sync"
	"time"

	"understudy/election/jute"
)

// role is what a server is in its ensemble.
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
	term  int      // grows each time it leaves
	epoch int64    // of the newest leader that it knew: it joins no older one
	log   []*entry // all that it knows of; what is beyond applied may never hold
	done  int64    // the zxid up to which the log is applied

	leader  *member
	heard   time.Time               // from the leader
	holds   int64                   // what the leader says
	touched map[int64]time.Duration // signs of life that the leader has not been told of
	waiting []*request              // of this server's clients

	// of a leader
	party   []*member // who follows
	acks    map[*member]int64
	alive   map[*member]time.Time
	owner   map[int64]int // the server that a session's client uses
	closing map[int64]bool
	last    int64 // the newest zxid
	syncs   []pendingSync
	beat    *time.Timer
}

type entryKind int

const (
	entryChange entryKind = iota
	entryOpen             // of a session
	entryClose
)

// entry is a change in the log.
type entry struct {
	zxid    int64
	now     int64
	kind    entryKind
	order   *order
	who     caller
	timeout time.Duration
	expired bool
	code    jute.Code // not OK: it was refused, but took its zxid
	origin  *request  // who asked for it
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
		return m.keep(session, timeout)
	}
	m.touched[session] = timeout // whether there is such a session, only the leader knows
	return true
}

// keep puts off the end of a session, at the leader.
func (m *member) keep(session int64, timeout time.Duration) bool {
	return !m.closing[session] && m.s.db.touch(session, timeout)
}

// admits gets a new session, or has the leader say whether an old one lives. served is false when there is no leader, or no
// client any more.
func (m *member) admits(c *conn, hello jute.ConnectRequest) (lives, served bool) {
	r := m.request(func(jute.Record, jute.Code) {})
	if hello.SessionID == 0 {
		timeout := c.timeout
		r.reply = func(record jute.Record, _ jute.Code) { c.session = int64(record.(sessionID)) }
		m.submit(&entry{kind: entryOpen, timeout: timeout, origin: r})
	} else {
		session, timeout := hello.SessionID, c.timeout
		m.ask(func(l *member) {
			if lives = l.keep(session, timeout); lives {
				l.owner[session] = m.index
				m.s.granted(c)
				l.s.armExpiry() // its end may be sooner than before
			}
		}, r)
	}
	m.await(r)
	return lives, r.holds && !c.over
}

// sessionID is what the opening of a session results in.
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
		m.settle(func() { r.finish(true) })
	} else {
		l := m.leader
		m.send(l, func() { l.settle(func() { l.send(m, func() { r.finish(true) }) }) })
	}
	m.await(r)
	return r.holds
}

// settle does something once all holds that a leader has proposed.
func (m *member) settle(do func()) {
	if m.last <= m.done {
		do()
		return
	}
	m.syncs = append(m.syncs, pendingSync{m.last, do})
}

// pendingSync is what waits for a change that is proposed.
type pendingSync struct {
	zxid int64
	do   func()
}

// write carries a client's change through the log, and answers it at its place there.
func (m *member) write(c *conn, h jute.RequestHeader, body []byte) {
	r := m.request(nil)
	e := &entry{kind: entryChange, order: decodeOrder(h.Op, body), who: caller{c.session, slices.Clone(c.ids)}, origin: r}
	r.reply = func(record jute.Record, code jute.Code) {
		if code == jute.SessionMoved { // its client has to settle anew where it is
			c.hangUp()
			return
		}
		m.s.send(c, h, record, code)
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

// await waits for the end of a request: what its client sends meanwhile waits behind it.
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
		m.accept(e, m.index)
		return
	}
	l := m.leader
	m.send(l, func() { l.accept(e, m.index) })
}

// expire has the leader end a session.
func (m *member) expire(session int64) {
	m.s.db.sessions.byID[session].expires = 1 << 62 // once is enough, however long it takes until that holds
	if !m.closing[session] {
		m.accept(&entry{kind: entryClose, who: caller{session: session}, expired: true}, m.index)
	}
}

// accept gives a change its place, and proposes it to the followers.
func (m *member) accept(e *entry, from int) {
	session := e.who.session
	_, known := m.s.db.sessions.byID[session]
	owner, owned := m.owner[session]
	switch {
	case e.kind == entryOpen || e.expired:
	case !known || m.closing[session]:
		e.code = jute.SessionExpired
	case owned && owner != from:
		e.code = jute.SessionMoved
	}
	if e.kind == entryClose && e.code == jute.OK {
		m.closing[session] = true
	}
	m.last++
	e.zxid, e.now = m.last, time.Now().UnixMilli()
	m.log = append(m.log, e)
	for _, f := range m.party {
		m.send(f, func() {
			f.log = append(f.log, e)
			f.apply(f.holds) // its word may have been quicker
			f.send(m, func() { m.acked(f, e.zxid) })
		})
	}
	m.advance()
}

func (m *member) acked(f *member, zxid int64) {
	m.acks[f] = max(m.acks[f], zxid)
	m.alive[f] = time.Now()
	m.advance()
}

// advance makes hold what a majority has.
func (m *member) advance() {
	if m.role != leading {
		return
	}
	have := []int64{m.last}
	for _, f := range m.party {
		have = append(have, m.acks[f])
	}
	slices.Sort(have)
	majority := len(m.e.members)/2 + 1
	if len(have) < majority {
		return
	}
	zxid := have[len(have)-majority]
	if zxid <= m.done {
		return
	}
	m.apply(zxid)
	for _, f := range m.party {
		m.send(f, func() {
			f.heard, f.holds = time.Now(), zxid
			f.apply(zxid)
		})
	}
	for len(m.syncs) > 0 && m.syncs[0].zxid <= m.done {
		m.syncs[0].do()
		m.syncs = m.syncs[1:]
	}
	m.e.shorten()
}

// apply carries out what the log holds up to a zxid.
func (m *member) apply(zxid int64) {
	for _, e := range m.log[m.applied():] {
		if e.zxid > zxid {
			return
		}
		m.carryOut(e)
		m.done = e.zxid
	}
}

// applied is how many entries of the log are.
func (m *member) applied() int {
	i, _ := slices.BinarySearchFunc(m.log, m.done+1, func(e *entry, zxid int64) int { return int(e.zxid - zxid) })
	return i
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
			m.s.armExpiry()
			if e.origin != nil {
				m.owner[id] = e.origin.m.index
			}
		}
	case e.kind == entryClose:
		changes := d.closeSession(e.who.session)
		m.s.observed(Commit{Zxid: e.zxid, Ended: e.who.session, Expired: e.expired}, changes)
		m.s.watches.fire(changes)
		delete(m.touched, e.who.session)
		delete(m.closing, e.who.session)
		delete(m.owner, e.who.session)
		if c := m.s.connOf(e.who.session); c != nil && e.expired {
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
