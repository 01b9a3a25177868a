package jute

// ConnectRequest opens a session (SessionID 0) or takes an existing one over.
type ConnectRequest struct {
	ProtocolVersion int32
	LastZxidSeen    int64
	Timeout         int32 // milliseconds
	SessionID       int64
	Password        []byte
	ReadOnly        bool
	NoReadOnly      bool // the request ends before the readOnly byte, as that of clients before 3.4
}

// Encode implements Record.
func (c ConnectRequest) Encode(w *Writer) {
	w.Int32(c.ProtocolVersion)
	w.Int64(c.LastZxidSeen)
	w.Int32(c.Timeout)
	w.Int64(c.SessionID)
	w.Buffer(c.Password)
	if !c.NoReadOnly {
		w.Bool(c.ReadOnly)
	}
}

// Decode implements Decoder.
func (c *ConnectRequest) Decode(r *Reader) {
	c.ProtocolVersion, c.LastZxidSeen = r.Int32(), r.Int64()
	c.Timeout, c.SessionID, c.Password = r.Int32(), r.Int64(), r.Buffer()
	c.NoReadOnly = r.Err() == nil && r.Remaining() == 0
	if !c.NoReadOnly {
		c.ReadOnly = r.Bool()
	}
}

// ConnectResponse answers it. SessionID 0 says that the session asked for does not exist (any more).
type ConnectResponse struct {
	ProtocolVersion int32
	Timeout         int32 // milliseconds
	SessionID       int64
	Password        []byte
	ReadOnly        bool
	NoReadOnly      bool // see ConnectRequest
}

// Encode implements Record.
func (c ConnectResponse) Encode(w *Writer) {
	w.Int32(c.ProtocolVersion)
	w.Int32(c.Timeout)
	w.Int64(c.SessionID)
	w.Buffer(c.Password)
	if !c.NoReadOnly {
		w.Bool(c.ReadOnly)
	}
}

// Decode implements Decoder.
func (c *ConnectResponse) Decode(r *Reader) {
	c.ProtocolVersion, c.Timeout = r.Int32(), r.Int32()
	c.SessionID, c.Password = r.Int64(), r.Buffer()
	c.NoReadOnly = r.Err() == nil && r.Remaining() == 0
	if !c.NoReadOnly {
		c.ReadOnly = r.Bool()
	}
}

// RequestHeader starts every request but the first.
type RequestHeader struct {
	Xid int32
	Op  Op
}

// ReplyHeader starts every answer but the first.
type ReplyHeader struct {
	Xid  int32
	Zxid int64
	Code Code
}

// AuthPacket adds a credential to the connection.
type AuthPacket struct {
	Type   int32
	Scheme string
	Auth   []byte
}

// WatchEvent is the body of a notification.
type WatchEvent struct {
	Type  EventType
	State int32
	Path  string
}

// SetWatches puts a client's watches back after a reconnect. Those that would have fired since RelativeZxid fire.
type SetWatches struct {
	RelativeZxid       int64
	Data, Exist, Child []string
}
