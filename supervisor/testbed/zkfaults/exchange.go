package zkfaults

import (
	"time"

	"understudy/election/jute"
	"understudy/election/zkmem"
)

// exchange is the conversation of a server with one client.
type exchange struct {
	s *Server
	c *conn
}

// answer deals with one frame: a four-letter word, the handshake, or a request.
func (x exchange) answer(frame []byte) {
	x.c.received.Add(1)
	if len(frame) == 4 && zkmem.IsWord(string(frame)) {
		x.answerWord(string(frame))
		return
	}
	body := frame[4:]
	x.s.mu.Lock()
	shaken := x.c.Shaken
	x.s.mu.Unlock()
	if !shaken {
		x.greet(body)
		return
	}
	x.s.mu.Lock()
	defer x.s.mu.Unlock()
	if !x.c.over {
		x.request(body)
	}
}

// greet reads the handshake. A cut may name the session that it is about, so it is looked at before it counts as
// having arrived.
func (x exchange) greet(body []byte) {
	var hello jute.ConnectRequest
	if err := jute.Unmarshal(body, &hello); err != nil {
		x.s.mu.Lock()
		defer x.s.mu.Unlock()
		x.c.HangUp()
		return
	}
	x.s.mu.Lock()
	x.c.Session = hello.SessionID
	x.s.faults.shape(x.c)
	x.s.mu.Unlock()
	x.c.in.open()

	x.s.mu.Lock()
	defer x.s.mu.Unlock()
	if x.c.over {
		return
	}
	x.s.counts[jute.OpCreateSession]++
	act := x.s.faults.take(event{op: jute.OpCreateSession, session: hello.SessionID, paths: []string{""}})
	x.under(act, func() { x.shake(hello) })
}

// under carries a request out, as a fault wants it.
func (x exchange) under(act action, do func()) {
	switch act.kind {
	case actCloseBefore:
		x.c.HangUp()
		return
	case actLoseReply:
		x.c.out.lose()
	case actCloseAfter:
		defer x.c.HangUp()
		x.c.out.finish()
	}
	do()
}

func (x exchange) shake(hello jute.ConnectRequest) {
	if hello.LastZxidSeen > x.s.db.Zxid {
		x.c.HangUp() // the client has seen more than we have: it must try another server
		return
	}
	if x.s.forgets {
		hello.SessionID = 0
	}
	asked := time.Duration(hello.Timeout) * time.Millisecond
	x.c.Timeout = min(max(asked, x.s.cfg.MinTimeout), x.s.cfg.MaxTimeout)
	lives := true
	if x.s.member != nil {
		var served bool
		if lives, served = x.s.member.requests.admits(x, hello); !served {
			x.c.HangUp()
			return
		}
	}
	if hello.SessionID == 0 {
		if x.s.member == nil {
			x.c.Session = x.s.db.openSession(x.c.Timeout)
		}
	} else if !x.resume(hello) || !lives {
		x.c.Refuse(hello)
		return
	}
	x.s.alarms.armExpiry()
	x.s.faults.shape(x.c)
	x.c.Admit(hello)
}

// resume takes a session over. The connection it had is closed first, even if the password turns out to be wrong.
func (x exchange) resume(hello jute.ConnectRequest) bool {
	if old := x.s.clients.of(hello.SessionID); old != nil {
		old.HangUp()
		x.s.watches.Drop(old.Client)
	}
	x.c.Session = hello.SessionID
	return string(hello.Password) == string(zkmem.Password(hello.SessionID)) && x.touch()
}

// touch notes a sign of life of a client; false means that its session is no more.
func (x exchange) touch() bool {
	if x.s.member != nil {
		return x.s.member.touch(x.c.Session, x.c.Timeout)
	}
	return x.s.db.touch(x.c.Session, x.c.Timeout)
}

func (x exchange) request(body []byte) {
	in := jute.NewReader(body)
	var h jute.RequestHeader
	in.Record(&h)
	if in.Err() != nil {
		x.c.HangUp()
		return
	}
	x.s.counts[h.Op]++
	body = body[len(body)-in.Remaining():]
	if h.Op == jute.OpAuth {
		x.c.Authenticate(h, body)
		return
	}
	var act action
	if len(x.s.faults.traps) > 0 {
		act = x.s.faults.take(eventOf(h.Op, x.c.Session, body))
	}
	if act.kind != actCloseBefore && !x.touch() {
		return
	}
	x.under(act, func() { x.reply(h, body, act) })
}

func (x exchange) reply(h jute.RequestHeader, body []byte, act action) {
	var record jute.Record
	var code jute.Code
	changes := x.s.member != nil && (h.Op == jute.OpCloseSession || h.Op.Writes()) && act.kind != actRefuse
	if x.s.member != nil && !changes {
		if act.kind == actNone && h.Op != jute.OpSync {
			x.s.member.requests.after(x.c, func() {
				record, code := x.s.read(x.c, h.Op, body)
				x.c.Answer(h, x.s.db.Zxid, record, code)
			})
			return
		}
		x.s.member.requests.settle(x.c)
		if x.c.over {
			return // who left its leader has hung up
		}
	}
	switch {
	case act.kind == actRefuse:
		code = act.code
		if h.Op.Writes() && x.s.member == nil {
			x.s.db.Skip()
		}
	case changes:
		x.s.member.requests.write(x, h, body)
		if act.kind != actNone {
			x.s.member.requests.settle(x.c)
		}
		return
	case x.s.member != nil && h.Op == jute.OpSync && !x.s.member.requests.sync():
		return // who left its leader has hung up
	case h.Op == jute.OpCloseSession:
		x.closeSession(h)
		return
	case h.Op.Writes():
		record, code = x.s.carryOut(x.c.Caller, newOrder(h.Op, body))
	default:
		record, code = x.s.read(x.c, h.Op, body)
	}
	x.c.Answer(h, x.s.db.Zxid, record, code)
}

// closeSession ends the caller's own session: events first, then the answer, then the connection.
func (x exchange) closeSession(h jute.RequestHeader) {
	x.s.replica.close(x.c.Session, false)
	x.s.watches.Drop(x.c.Client)
	x.c.Send(jute.ReplyHeader{Xid: h.Xid, Zxid: x.s.db.Zxid})
	x.c.HangUp()
}

func (x exchange) answerWord(word string) {
	x.s.mu.Lock()
	defer x.s.mu.Unlock()
	if x.c.over {
		return
	}
	x.c.sent.Add(1)
	x.c.out.push([]byte(x.s.db.Word(word, x.s.figures())))
	x.c.HangUp()
}
