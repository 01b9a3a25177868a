package zkmem

import (
	"time"

	"understudy/election/jute"
)

// answer deals with one frame: a four-letter word, the handshake, or a request.
func (s *Server) answer(c *conn, frame []byte) {
	c.received.Add(1)
	if len(frame) == 4 && isWord(string(frame)) {
		s.answerWord(c, string(frame))
		return
	}
	body := frame[4:]
	s.mu.Lock()
	shaken := c.shaken
	s.mu.Unlock()
	if !shaken {
		s.greet(c, body)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !c.over {
		s.request(c, body)
	}
}

// greet reads the handshake. A cut may name the session that it is about, so it is looked at before it counts as
// having arrived.
func (s *Server) greet(c *conn, body []byte) {
	var hello jute.ConnectRequest
	if err := jute.Unmarshal(body, &hello); err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		c.hangUp()
		return
	}
	s.mu.Lock()
	c.session = hello.SessionID
	s.faults.shape(c)
	s.mu.Unlock()
	c.in.open()

	s.mu.Lock()
	defer s.mu.Unlock()
	if c.over {
		return
	}
	s.counts[jute.OpCreateSession]++
	act := s.faults.take(event{op: jute.OpCreateSession, session: hello.SessionID, paths: []string{""}})
	s.under(c, act, func() { s.shake(c, hello) })
}

// under does what a request asks for, in the circumstances that a fault wants.
func (s *Server) under(c *conn, act action, do func()) {
	switch act.kind {
	case actCloseBefore:
		c.hangUp()
		return
	case actLoseReply:
		c.out.lose()
	case actCloseAfter:
		defer c.hangUp()
		c.out.finish()
	}
	do()
}

func (s *Server) shake(c *conn, hello jute.ConnectRequest) {
	if hello.LastZxidSeen > s.db.zxid {
		c.hangUp() // what the client has seen, we have not: it must try another server
		return
	}
	asked := time.Duration(hello.Timeout) * time.Millisecond
	c.timeout = min(max(asked, s.cfg.MinTimeout), s.cfg.MaxTimeout)
	lives := true
	if s.member != nil {
		var served bool
		if lives, served = s.member.admits(c, hello); !served {
			c.hangUp()
			return
		}
	}
	if hello.SessionID == 0 {
		if s.member == nil {
			c.session = s.db.openSession(c.timeout)
		}
	} else if !s.resume(c, hello) || !lives {
		c.send(jute.ConnectResponse{Password: make([]byte, 16), NoReadOnly: hello.NoReadOnly})
		c.hangUp()
		return
	}
	if s.member == nil && hello.SessionID != 0 {
		s.granted(c)
	}
	c.shaken = true
	c.lastOp, c.lastZxid = "SESS", s.db.zxid
	s.armExpiry()
	s.faults.shape(c)
	c.send(jute.ConnectResponse{
		Timeout:    int32(c.timeout.Milliseconds()),
		SessionID:  c.session,
		Password:   Password(c.session),
		NoReadOnly: hello.NoReadOnly,
	})
}

// resume takes a session over. The connection it had is closed first, even if the password turns out to be wrong.
func (s *Server) resume(c *conn, hello jute.ConnectRequest) bool {
	if old := s.connOf(hello.SessionID); old != nil {
		old.hangUp()
		s.watches.dropAll(old)
	}
	c.session = hello.SessionID
	return string(hello.Password) == string(Password(hello.SessionID)) && s.touch(c)
}

// granted tells the observer of a session that has come back.
func (s *Server) granted(c *conn) {
	if s.cfg.Granted != nil {
		s.cfg.Granted(c.net, c.session, c.timeout)
	}
}

// touch notes a sign of life of a client; false means that its session is no more.
func (s *Server) touch(c *conn) bool {
	if s.member != nil {
		return s.member.touch(c.session, c.timeout)
	}
	return s.db.touch(c.session, c.timeout)
}

func (s *Server) request(c *conn, body []byte) {
	in := jute.NewReader(body)
	var h jute.RequestHeader
	h.Decode(in)
	if in.Err() != nil {
		c.hangUp()
		return
	}
	s.counts[h.Op]++
	body = body[len(body)-in.Remaining():]
	if h.Op == jute.OpAuth {
		s.authenticate(c, h.Xid, body)
		return
	}
	var act action
	if len(s.faults.traps) > 0 {
		act = s.faults.take(eventOf(h.Op, c.session, body))
	}
	if act.kind != actCloseBefore && !s.touch(c) {
		return
	}
	s.under(c, act, func() { s.reply(c, h, body, act) })
}

func (s *Server) reply(c *conn, h jute.RequestHeader, body []byte, act action) {
	var record jute.Record
	var code jute.Code
	switch {
	case act.kind == actRefuse:
		code = act.code
		if h.Op.Writes() && s.member == nil {
			s.db.begin()
		}
	case s.member != nil && (h.Op == jute.OpCloseSession || h.Op.Writes()):
		s.member.write(c, h, body)
		return
	case s.member != nil && h.Op == jute.OpSync && !s.member.sync():
		return // who left its leader has hung up
	case h.Op == jute.OpCloseSession:
		s.closeSession(c, h)
		return
	case h.Op.Writes():
		record, code = s.change(c, h.Op, body)
	default:
		record, code = s.read(c, h.Op, body)
	}
	s.send(c, h, record, code)
}

// send answers a request.
func (s *Server) send(c *conn, h jute.RequestHeader, record jute.Record, code jute.Code) {
	zxid := s.db.zxid
	switch code {
	case errUnknown:
		code, zxid = jute.Unimplemented, -1
		defer c.hangUp()
	case errSilent:
		return
	}
	c.lastOp, c.lastXid, c.lastZxid = lastOps[h.Op], h.Xid, zxid
	header := jute.ReplyHeader{Xid: h.Xid, Zxid: zxid, Code: code}
	if code != jute.OK || record == nil {
		c.send(header)
		return
	}
	c.send(header, record)
}

// lastOps are the names that the word cons has for what a connection did last.
var lastOps = map[jute.Op]string{
	jute.OpCreate: "CREA", jute.OpCreate2: "CREA", jute.OpCreateContainer: "CREA", jute.OpCreateTTL: "CREA",
	jute.OpDelete: "DELE", jute.OpExists: "EXIS", jute.OpGetData: "GETD", jute.OpSetData: "SETD", jute.OpGetACL: "GETA",
	jute.OpSetACL: "SETA", jute.OpGetChildren: "GETC", jute.OpGetChildren2: "GETC", jute.OpSync: "SYNC",
	jute.OpPing: "PING", jute.OpCheck: "CHEC", jute.OpMulti: "MULT", jute.OpSetWatches: "SETW",
	jute.OpSetWatches2: "STW2", jute.OpAddWatch: "ADDW", jute.OpCheckWatches: "CHKW", jute.OpRemoveWatches: "REMW",
	jute.OpGetEphemerals: "GETE", jute.OpGetAllChildrenNumber: "GETACN",
}

// closeSession ends the caller's own session: events first, then the answer, then the connection.
func (s *Server) closeSession(c *conn, h jute.RequestHeader) {
	changes := s.db.closeSession(c.session)
	s.observed(Commit{Zxid: s.db.zxid, Ended: c.session}, changes)
	s.watches.fire(changes)
	s.watches.dropAll(c)
	c.send(jute.ReplyHeader{Xid: h.Xid, Zxid: s.db.zxid})
	c.hangUp()
}

func (s *Server) authenticate(c *conn, xid int32, body []byte) {
	var auth jute.Auth
	if err := jute.Unmarshal(body, &auth); err != nil {
		c.hangUp()
		return
	}
	switch auth.Scheme {
	case "digest":
		c.identify(identity{"digest", digestID(string(auth.Auth))})
	case "ip":
		c.identify(identity{"ip", c.host()})
	default:
		c.send(jute.ReplyHeader{Xid: xid, Code: jute.AuthFailed})
		c.hangUp()
		return
	}
	c.send(jute.ReplyHeader{Xid: xid})
}

func (c *conn) identify(id identity) {
	for _, known := range c.ids {
		if known == id {
			return
		}
	}
	c.ids = append(c.ids, id)
}
