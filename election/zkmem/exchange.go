package zkmem

import (
	"slices"
	"strings"
	"time"

	"understudy/election/jute"
)

// exchange is the conversation of a server with one client.
type exchange struct {
	s *Server
	c *conn
}

// answer deals with one frame: a four-letter word, the handshake, or a request.
func (x exchange) answer(frame []byte) {
	x.c.received.Add(1)
	if len(frame) == 4 && isWord(string(frame)) {
		x.answerWord(string(frame))
		return
	}
	body := frame[4:]
	x.s.mu.Lock()
	shaken := x.c.shaken
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
		x.c.hangUp()
		return
	}
	x.s.mu.Lock()
	x.c.session = hello.SessionID
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
		x.c.hangUp()
		return
	case actLoseReply:
		x.c.out.lose()
	case actCloseAfter:
		defer x.c.hangUp()
		x.c.out.finish()
	}
	do()
}

func (x exchange) shake(hello jute.ConnectRequest) {
	if hello.LastZxidSeen > x.s.db.zxid {
		x.c.hangUp() // the client has seen more than we have: it must try another server
		return
	}
	if x.s.forgets {
		hello.SessionID = 0
	}
	asked := time.Duration(hello.Timeout) * time.Millisecond
	x.c.timeout = min(max(asked, x.s.cfg.MinTimeout), x.s.cfg.MaxTimeout)
	lives := true
	if x.s.member != nil {
		var served bool
		if lives, served = x.s.member.requests.admits(x, hello); !served {
			x.c.hangUp()
			return
		}
	}
	if hello.SessionID == 0 {
		if x.s.member == nil {
			x.c.session = x.s.db.openSession(x.c.timeout)
		}
	} else if !x.resume(hello) || !lives {
		x.c.send(jute.ConnectResponse{Password: make([]byte, 16), NoReadOnly: hello.NoReadOnly})
		x.c.hangUp()
		return
	}
	x.c.shaken = true
	x.c.last.op, x.c.last.zxid = "SESS", x.s.db.zxid
	x.s.alarms.armExpiry()
	x.s.faults.shape(x.c)
	x.c.send(jute.ConnectResponse{
		Timeout:    int32(x.c.timeout.Milliseconds()),
		SessionID:  x.c.session,
		Password:   Password(x.c.session),
		NoReadOnly: hello.NoReadOnly,
	})
}

// resume takes a session over. The connection it had is closed first, even if the password turns out to be wrong.
func (x exchange) resume(hello jute.ConnectRequest) bool {
	if old := x.s.clients.of(hello.SessionID); old != nil {
		old.hangUp()
		x.s.watches.dropAll(old)
	}
	x.c.session = hello.SessionID
	return string(hello.Password) == string(Password(hello.SessionID)) && x.touch()
}

// touch notes a sign of life of a client; false means that its session is no more.
func (x exchange) touch() bool {
	if x.s.member != nil {
		return x.s.member.touch(x.c.session, x.c.timeout)
	}
	return x.s.db.touch(x.c.session, x.c.timeout)
}

func (x exchange) request(body []byte) {
	in := jute.NewReader(body)
	var h jute.RequestHeader
	h.Decode(in)
	if in.Err() != nil {
		x.c.hangUp()
		return
	}
	x.s.counts[h.Op]++
	body = body[len(body)-in.Remaining():]
	if h.Op == jute.OpAuth {
		x.authenticate(h.Xid, body)
		return
	}
	if h.Op == jute.OpSASL {
		x.sasl(h.Xid, body)
		return
	}
	var act action
	if len(x.s.faults.traps) > 0 {
		act = x.s.faults.take(eventOf(h.Op, x.c.session, body))
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
				x.send(h, record, code)
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
			x.s.db.begin()
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
		record, code = x.s.carryOut(caller{x.c.session, x.c.ids}, decodeOrder(h.Op, body))
		x.s.alarms.armCleaning()
	default:
		record, code = x.s.read(x.c, h.Op, body)
	}
	x.send(h, record, code)
}

// send answers a request.
func (x exchange) send(h jute.RequestHeader, record jute.Record, code jute.Code) {
	zxid := x.s.db.zxid
	switch code {
	case errUnknown:
		code, zxid = jute.Unimplemented, -1
		defer x.c.hangUp()
	case errSilent:
		return
	}
	x.c.last.op, x.c.last.xid, x.c.last.zxid = lastOps[h.Op], h.Xid, zxid
	header := jute.ReplyHeader{Xid: h.Xid, Zxid: zxid, Code: code}
	if code != jute.OK || record == nil {
		x.c.send(header)
		return
	}
	x.c.send(header, record)
}

// closeSession ends the caller's own session: events first, then the answer, then the connection.
func (x exchange) closeSession(h jute.RequestHeader) {
	x.s.replica.close(x.c.session, false)
	x.s.watches.dropAll(x.c)
	x.c.send(jute.ReplyHeader{Xid: h.Xid, Zxid: x.s.db.zxid})
	x.c.hangUp()
}

func (x exchange) authenticate(xid int32, body []byte) {
	var auth jute.AuthPacket
	if err := jute.Unmarshal(body, &auth); err != nil {
		x.c.hangUp()
		return
	}
	switch auth.Scheme {
	case "digest":
		x.c.identify(identity{"digest", digestID(string(auth.Auth))})
	case "ip":
		x.c.identify(identity{"ip", x.c.host()})
	default:
		x.c.send(jute.ReplyHeader{Xid: xid, Code: jute.AuthFailed})
		x.c.hangUp()
		return
	}
	x.c.send(jute.ReplyHeader{Xid: xid})
}

// sasl answers as a server does that SASL was not configured for: without a token.
func (x exchange) sasl(xid int32, body []byte) {
	var token jute.Token
	if jute.Unmarshal(body, &token) != nil || token == nil {
		x.c.hangUp()
		return
	}
	x.c.send(jute.ReplyHeader{Xid: xid}, jute.Token(nil))
}

func (c *conn) whoAmI() (list jute.Identities) {
	for _, id := range c.ids {
		user, _, _ := strings.Cut(id.id, ":")
		if id.scheme == "ip" {
			user = id.id
		}
		list = append(list, jute.Identity{Scheme: id.scheme, User: user})
	}
	return list
}

func (c *conn) identify(id identity) {
	if !slices.Contains(c.ids, id) {
		c.ids = append(c.ids, id)
	}
}
