package zktest

import (
	"errors"
	"fmt"
	"net"
	"time"

	"understudy/election/jute"
)

// Raw is a client that hides nothing: it sends the frames it is told to, has no pings and no goroutine, and shows
// answers and events in the order in which they arrive. It is for one goroutine.
type Raw struct {
	Conn     net.Conn
	Session  jute.ConnectResponse
	Patience time.Duration // for one answer
	Events   []jute.WatchEvent

	xid int32
}

// Packet is one frame from the server.
type Packet struct {
	jute.ReplyHeader
	Body []byte
}

// DialRaw opens a session with a handshake of the caller's making. ErrRefused says that there is none to be had.
func DialRaw(addr string, hello jute.ConnectRequest) (*Raw, error) {
	conn, err := net.DialTimeout("tcp", addr, 5*time.Second)
	if err != nil {
		return nil, err
	}
	return NewRaw(conn, hello)
}

// ErrRefused says that the server knows no such session.
var ErrRefused = errors.New("session refused")

// NewRaw is DialRaw on a connection that is there. It owns conn, also when it fails.
func NewRaw(conn net.Conn, hello jute.ConnectRequest) (*Raw, error) {
	r := &Raw{Conn: conn, Patience: 10 * time.Second}
	if err := r.shake(hello); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return r, nil
}

func (r *Raw) shake(hello jute.ConnectRequest) error {
	if hello.Password == nil {
		hello.Password = make([]byte, 16)
	}
	if err := r.write(jute.Frame(hello)); err != nil {
		return err
	}
	body, err := r.frame()
	if err != nil {
		return fmt.Errorf("handshake: %w", err)
	}
	if err := jute.Unmarshal(body, &r.Session); err != nil {
		return err
	}
	if r.Session.SessionID == 0 {
		return ErrRefused
	}
	return nil
}

func (r *Raw) write(frame []byte) error {
	if err := r.Conn.SetWriteDeadline(time.Now().Add(r.Patience)); err != nil {
		return err
	}
	_, err := r.Conn.Write(frame)
	return err
}

func (r *Raw) frame() ([]byte, error) {
	if err := r.Conn.SetReadDeadline(time.Now().Add(r.Patience)); err != nil {
		return nil, err
	}
	return jute.ReadFrame(r.Conn, 16<<20)
}

// Send sends one request and returns its xid.
func (r *Raw) Send(op jute.Op, body ...jute.Record) (int32, error) {
	r.xid++
	xid := r.xid
	switch op {
	case jute.OpPing:
		xid = jute.XidPing
	case jute.OpAuth:
		xid = jute.XidAuth
	case jute.OpSetWatches:
		xid = jute.XidSetWatches
	}
	return xid, r.write(jute.Frame(append([]jute.Record{jute.RequestHeader{Xid: xid, Op: op}}, body...)...))
}

// Next is the next frame from the server, an event or an answer.
func (r *Raw) Next() (Packet, error) {
	body, err := r.frame()
	if err != nil {
		return Packet{}, err
	}
	var p Packet
	in := jute.NewReader(body)
	in.Record(&p.ReplyHeader)
	if in.Err() != nil {
		return p, in.Err()
	}
	p.Body = body[len(body)-in.Remaining():]
	return p, nil
}

// Call sends a request and waits for its answer, which is decoded into out unless that is nil or the code says no.
// Events that arrive first are appended to Events. The error is a jute.Code when the server refused.
func (r *Raw) Call(op jute.Op, body jute.Record, out jute.Decoder) (jute.ReplyHeader, error) {
	var records []jute.Record
	if body != nil {
		records = append(records, body)
	}
	xid, err := r.Send(op, records...)
	if err != nil {
		return jute.ReplyHeader{}, err
	}
	for {
		p, err := r.Next()
		if err != nil {
			return p.ReplyHeader, fmt.Errorf("%v: %w", op, err)
		}
		if p.Xid == jute.XidNotification {
			var ev jute.WatchEvent
			if err := jute.Unmarshal(p.Body, &ev); err != nil {
				return p.ReplyHeader, err
			}
			r.Events = append(r.Events, ev)
			continue
		}
		if p.Xid != xid {
			return p.ReplyHeader, fmt.Errorf("%v: answer to %d, not %d", op, p.Xid, xid)
		}
		if p.Code != jute.OK {
			return p.ReplyHeader, p.Code
		}
		if out == nil {
			return p.ReplyHeader, nil
		}
		return p.ReplyHeader, jute.Unmarshal(p.Body, out)
	}
}

// TakeEvents returns the events seen so far and forgets them.
func (r *Raw) TakeEvents() []jute.WatchEvent {
	events := r.Events
	r.Events = nil
	return events
}

// Close drops the connection; the session lives on until it ends by itself. See jute.OpCloseSession.
func (r *Raw) Close() error { return r.Conn.Close() }
