package zkfaults

import (
	"slices"
	"sync"
	"time"

	"understudy/election/jute"
)

// requests are those of a server's clients that its ensemble has to agree on. The ensemble's lock guards them.
type requests struct {
	m       *member
	waiting []*request
}

// request is a client's, waiting for its turn in the log.
type request struct {
	of    *requests
	over  bool
	holds bool // it was carried out
	came  time.Time
	ended *sync.Cond
	then  []func() // what its client asked for after it, and before its next change
	reply func(record jute.Record, code jute.Code)
}

// add notes a request. reply is called when it has its place in the log.
func (rs *requests) add(reply func(jute.Record, jute.Code)) *request {
	r := &request{of: rs, came: time.Now(), ended: sync.NewCond(rs.m.e.mu), reply: reply}
	rs.waiting = append(rs.waiting, r)
	return r
}

// await waits for the end of a request: later ones of its client wait behind it.
func (rs *requests) await(r *request) {
	for !r.over {
		r.ended.Wait()
	}
}

func (r *request) finish(holds bool) {
	if r.over {
		return
	}
	r.over, r.holds = true, holds
	if i := slices.Index(r.of.waiting, r); i >= 0 {
		r.of.waiting = slices.Delete(r.of.waiting, i, i+1)
	}
	r.ended.Broadcast()
	if holds {
		for _, answer := range r.then {
			answer()
		}
	}
}

// giveUp ends all requests: nobody knows whether they are carried out.
func (rs *requests) giveUp() {
	for _, r := range slices.Clone(rs.waiting) {
		r.finish(false)
	}
}

// admits gets a new session, or has the leader say whether an old one lives. served is false when there is no leader, or no
// client any more.
func (rs *requests) admits(x exchange, hello jute.ConnectRequest) (lives, served bool) {
	c, r := x.c, rs.add(func(jute.Record, jute.Code) {})
	if hello.SessionID == 0 {
		timeout := c.Timeout
		r.reply = func(record jute.Record, _ jute.Code) { c.Session = int64(record.(sessionID)) }
		rs.submit(&entry{kind: entryOpen, timeout: timeout, origin: r})
	} else {
		session, timeout := hello.SessionID, c.Timeout
		rs.ask(func(l *member) {
			if lives = l.lead.keep(session, timeout); lives {
				l.lead.owner[session] = rs.m.index
				l.s.alarms.armExpiry() // its end may be sooner than before
			}
		}, r)
	}
	rs.await(r)
	return lives, r.holds && !c.over
}

// sessionID is the result of opening a session.
type sessionID int64

// Encode implements jute.Record.
func (sessionID) Encode(*jute.Writer) {}

// ask has the leader do something, and ends the request when its word is back.
func (rs *requests) ask(do func(l *member), r *request) {
	if rs.m.role == leading {
		do(rs.m)
		r.finish(true)
		return
	}
	l := rs.m.leader
	rs.m.send(l, func() {
		do(l)
		l.send(rs.m, func() { r.finish(true) })
	})
}

// sync waits until all holds here that the leader had proposed when it was asked: its answer comes after that.
func (rs *requests) sync() bool {
	r := rs.add(nil)
	if rs.m.role == leading {
		rs.m.lead.settle(func() { r.finish(true) })
	} else {
		l := rs.m.leader
		rs.m.send(l, func() { l.lead.settle(func() { l.send(rs.m, func() { r.finish(true) }) }) })
	}
	rs.await(r)
	return r.holds
}

// write carries a client's change through the log, and answers it at its place there. The client's next change may follow at once.
func (rs *requests) write(x exchange, h jute.RequestHeader, body []byte) {
	c, r := x.c, rs.add(nil)
	e := &entry{kind: entryChange, order: newOrder(h.Op, body), who: c.Caller, origin: r}
	r.reply = func(record jute.Record, code jute.Code) {
		if code == jute.SessionMoved { // its client has to settle anew where it is
			c.HangUp()
			return
		}
		x.c.Answer(h, rs.m.s.db.Zxid, record, code)
	}
	if h.Op == jute.OpCloseSession {
		e.kind = entryClose
		r.reply = func(_ jute.Record, code jute.Code) {
			rs.m.s.watches.Drop(c.Client)
			c.Send(jute.ReplyHeader{Xid: h.Xid, Zxid: rs.m.s.db.Zxid, Code: code})
			c.HangUp()
		}
	}
	c.change = r
	rs.submit(e)
}

// settle waits until a client's changes are carried out.
func (rs *requests) settle(c *conn) {
	if c.change != nil {
		rs.await(c.change)
	}
}

// after answers what a client asks for once its changes are carried out. They hold up no later change.
func (rs *requests) after(c *conn, answer func()) {
	if c.change == nil || c.change.over {
		answer()
		return
	}
	c.change.then = append(c.change.then, func() {
		if !c.over {
			answer()
		}
	})
}

// submit brings a change to the leader.
func (rs *requests) submit(e *entry) {
	if rs.m.role == leading {
		rs.m.lead.accept(e, rs.m.index)
		return
	}
	l := rs.m.leader
	rs.m.send(l, func() { l.lead.accept(e, rs.m.index) })
}
