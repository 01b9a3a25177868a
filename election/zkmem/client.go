package zkmem

import (
	"slices"
	"time"

	"understudy/election/jute"
)

// Line brings frames to a client, in order, and never waits.
type Line interface {
	Send(records ...jute.Record)
	HangUp() // after all that was sent
}

// Client is one connection of a client. The lock of its server guards it.
type Client struct {
	Caller       // its session is 0 until the handshake has named one
	Shaken  bool // the handshake is done
	Timeout time.Duration
	line    Line
}

// Caller asks for a change.
type Caller struct {
	Session int64
	ids     []string // digests that it has proved
}

// NewClient is the client at the far end of a line.
func NewClient(l Line) *Client { return &Client{line: l} }

func (c *Client) notify(kind jute.EventType, path string) {
	c.line.Send(jute.ReplyHeader{Xid: jute.XidNotification, Zxid: -1},
		jute.WatchEvent{Type: kind, State: jute.StateSyncConnected, Path: path})
}

// Admit ends the handshake well.
func (c *Client) Admit(hello jute.ConnectRequest) {
	c.Shaken = true
	c.line.Send(jute.ConnectResponse{
		Timeout:    int32(c.Timeout.Milliseconds()),
		SessionID:  c.Session,
		Password:   Password(c.Session),
		NoReadOnly: hello.NoReadOnly,
	})
}

// Refuse ends a handshake that names a session which is no more.
func (c *Client) Refuse(hello jute.ConnectRequest) {
	c.line.Send(jute.ConnectResponse{Password: make([]byte, 16), NoReadOnly: hello.NoReadOnly})
	c.line.HangUp()
}

// Answer answers a request, after the transaction zxid.
func (c *Client) Answer(h jute.RequestHeader, zxid int64, record jute.Record, code jute.Code) {
	if code == jute.Unimplemented {
		zxid = -1
		defer c.line.HangUp()
	}
	header := jute.ReplyHeader{Xid: h.Xid, Zxid: zxid, Code: code}
	if code != jute.OK || record == nil {
		c.line.Send(header)
		return
	}
	c.line.Send(header, record)
}

// Authenticate notes an id that a client proves.
func (c *Client) Authenticate(h jute.RequestHeader, body []byte) {
	var auth jute.AuthPacket
	if err := jute.Unmarshal(body, &auth); err != nil {
		c.line.HangUp()
		return
	}
	if auth.Scheme != "digest" {
		c.line.Send(jute.ReplyHeader{Xid: h.Xid, Code: jute.AuthFailed})
		c.line.HangUp()
		return
	}
	if id := digestID(string(auth.Auth)); !slices.Contains(c.ids, id) {
		c.ids = append(c.ids, id)
	}
	c.line.Send(jute.ReplyHeader{Xid: h.Xid})
}
