package jute

// Stat is a node's metadata.
type Stat struct {
	Czxid          int64
	Mzxid          int64
	Ctime          int64 // milliseconds since 1970
	Mtime          int64
	Version        int32
	Cversion       int32
	Aversion       int32
	EphemeralOwner int64
	DataLength     int32
	NumChildren    int32
	Pzxid          int64
}

// Encode implements Record.
func (s Stat) Encode(w *Writer) {
	w.Int64(s.Czxid)
	w.Int64(s.Mzxid)
	w.Int64(s.Ctime)
	w.Int64(s.Mtime)
	w.Int32(s.Version)
	w.Int32(s.Cversion)
	w.Int32(s.Aversion)
	w.Int64(s.EphemeralOwner)
	w.Int32(s.DataLength)
	w.Int32(s.NumChildren)
	w.Int64(s.Pzxid)
}

// Decode implements Decoder.
func (s *Stat) Decode(r *Reader) {
	s.Czxid, s.Mzxid, s.Ctime, s.Mtime = r.Int64(), r.Int64(), r.Int64(), r.Int64()
	s.Version, s.Cversion, s.Aversion = r.Int32(), r.Int32(), r.Int32()
	s.EphemeralOwner, s.DataLength, s.NumChildren, s.Pzxid = r.Int64(), r.Int32(), r.Int32(), r.Int64()
}

// ACL gives an id permissions.
type ACL struct {
	Perms  int32
	Scheme string
	ID     string
}

// WorldACL lets everybody do what perms say.
func WorldACL(perms int32) []ACL { return []ACL{{perms, "world", "anyone"}} }

func encodeACLs(w *Writer, list []ACL) {
	w.Count(len(list))
	for _, a := range list {
		w.Int32(a.Perms)
		w.String(a.Scheme)
		w.String(a.ID)
	}
}

func decodeACLs(r *Reader) []ACL {
	n := r.Count(12)
	if n == 0 {
		return nil
	}
	list := make([]ACL, 0, n)
	for range n {
		list = append(list, ACL{Perms: r.Int32(), Scheme: r.String(), ID: r.String()})
	}
	return list
}

// Create is the request of create and create2.
type Create struct {
	Path  string
	Data  []byte
	ACL   []ACL
	Flags int32
}

// Encode implements Record.
func (c Create) Encode(w *Writer) {
	w.String(c.Path)
	w.Buffer(c.Data)
	encodeACLs(w, c.ACL)
	w.Int32(c.Flags)
}

// Decode implements Decoder.
func (c *Create) Decode(r *Reader) {
	c.Path, c.Data, c.ACL, c.Flags = path(r), r.Buffer(), decodeACLs(r), r.Int32()
}

// PathVersion is the request of delete and check. Version -1 matches any.
type PathVersion struct {
	Path    string
	Version int32
}

// Encode implements Record.
func (p PathVersion) Encode(w *Writer) {
	w.String(p.Path)
	w.Int32(p.Version)
}

// Decode implements Decoder.
func (p *PathVersion) Decode(r *Reader) { p.Path, p.Version = path(r), r.Int32() }

// PathWatch is the request of exists, getData, getChildren and getChildren2.
type PathWatch struct {
	Path  string
	Watch bool
}

// Encode implements Record.
func (p PathWatch) Encode(w *Writer) {
	w.String(p.Path)
	w.Bool(p.Watch)
}

// Decode implements Decoder.
func (p *PathWatch) Decode(r *Reader) { p.Path, p.Watch = path(r), r.Bool() }

// SetData is the request of setData. Version -1 matches any.
type SetData struct {
	Path    string
	Data    []byte
	Version int32
}

// Encode implements Record.
func (s SetData) Encode(w *Writer) {
	w.String(s.Path)
	w.Buffer(s.Data)
	w.Int32(s.Version)
}

// Decode implements Decoder.
func (s *SetData) Decode(r *Reader) { s.Path, s.Data, s.Version = path(r), r.Buffer(), r.Int32() }

// SetACL is the request of setACL. Version is that of the ACL; -1 matches any.
type SetACL struct {
	Path    string
	ACL     []ACL
	Version int32
}

// Encode implements Record.
func (s SetACL) Encode(w *Writer) {
	w.String(s.Path)
	encodeACLs(w, s.ACL)
	w.Int32(s.Version)
}

// Decode implements Decoder.
func (s *SetACL) Decode(r *Reader) { s.Path, s.ACL, s.Version = path(r), decodeACLs(r), r.Int32() }

// Path is the request of getACL and sync, and the answer of create and sync.
type Path string

// Encode implements Record.
func (p Path) Encode(w *Writer) { w.String(string(p)) }

// Decode implements Decoder.
func (p *Path) Decode(r *Reader) { *p = Path(path(r)) }

// path reads a path. Null, which a server can do nothing with, is a fault.
func path(r *Reader) string {
	s, ok := r.NullableString()
	if !ok {
		r.Fail(ErrLength)
	}
	return s
}
