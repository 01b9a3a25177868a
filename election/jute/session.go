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

// Encode implements Record.
func (h RequestHeader) Encode(w *Writer) {
	w.Int32(h.Xid)
	w.Int32(int32(h.Op))
}

// Decode implements Decoder.
func (h *RequestHeader) Decode(r *Reader) { h.Xid, h.Op = r.Int32(), Op(r.Int32()) }

// ReplyHeader starts every answer but the first.
type ReplyHeader struct {
	Xid  int32
	Zxid int64
	Code Code
}

// Encode implements Record.
func (h ReplyHeader) Encode(w *Writer) {
	w.Int32(h.Xid)
	w.Int64(h.Zxid)
	w.Int32(int32(h.Code))
}

// Decode implements Decoder.
func (h *ReplyHeader) Decode(r *Reader) {
	h.Xid, h.Zxid, h.Code = r.Int32(), r.Int64(), Code(r.Int32())
}

// AuthPacket adds a credential to the connection.
type AuthPacket struct {
	Type   int32
	Scheme string
	Auth   []byte
}

// Encode implements Record.
func (a AuthPacket) Encode(w *Writer) {
	w.Int32(a.Type)
	w.String(a.Scheme)
	w.Buffer(a.Auth)
}

// Decode implements Decoder.
func (a *AuthPacket) Decode(r *Reader) { a.Type, a.Scheme, a.Auth = r.Int32(), r.String(), r.Buffer() }

// WatchEvent is the body of a notification.
type WatchEvent struct {
	Type  EventType
	State int32
	Path  string
}

// Encode implements Record.
func (e WatchEvent) Encode(w *Writer) {
	w.Int32(int32(e.Type))
	w.Int32(e.State)
	w.String(e.Path)
}

// Decode implements Decoder.
func (e *WatchEvent) Decode(r *Reader) {
	e.Type, e.State, e.Path = EventType(r.Int32()), r.Int32(), r.String()
}

// SetWatches puts a client's watches back after a reconnect. Those that would have fired since RelativeZxid fire.
type SetWatches struct {
	RelativeZxid       int64
	Data, Exist, Child []string
}

// Encode implements Record.
func (s SetWatches) Encode(w *Writer) {
	w.Int64(s.RelativeZxid)
	w.Strings(s.Data)
	w.Strings(s.Exist)
	w.Strings(s.Child)
}

// Decode implements Decoder.
func (s *SetWatches) Decode(r *Reader) {
	s.RelativeZxid, s.Data, s.Exist, s.Child = r.Int64(), r.Strings(), r.Strings(), r.Strings()
}
