package jute

// PathStat is the answer of create2.
type PathStat struct {
	Path string
	Stat Stat
}

// Encode implements Record.
func (p PathStat) Encode(w *Writer) {
	w.String(p.Path)
	p.Stat.Encode(w)
}

// Decode implements Decoder.
func (p *PathStat) Decode(r *Reader) {
	p.Path = r.String()
	p.Stat.Decode(r)
}

// DataStat is the answer of getData.
type DataStat struct {
	Data []byte
	Stat Stat
}

// Encode implements Record.
func (d DataStat) Encode(w *Writer) {
	w.Buffer(d.Data)
	d.Stat.Encode(w)
}

// Decode implements Decoder.
func (d *DataStat) Decode(r *Reader) {
	d.Data = r.Buffer()
	d.Stat.Decode(r)
}

// ACLStat is the answer of getACL.
type ACLStat struct {
	ACL  []ACL
	Stat Stat
}

// Encode implements Record.
func (a ACLStat) Encode(w *Writer) {
	encodeACLs(w, a.ACL)
	a.Stat.Encode(w)
}

// Decode implements Decoder.
func (a *ACLStat) Decode(r *Reader) {
	a.ACL = decodeACLs(r)
	a.Stat.Decode(r)
}

// Children is the answer of getChildren.
type Children []string

// Encode implements Record.
func (c Children) Encode(w *Writer) { w.Strings(c) }

// Decode implements Decoder.
func (c *Children) Decode(r *Reader) { *c = r.Strings() }

// ChildrenStat is the answer of getChildren2.
type ChildrenStat struct {
	Children []string
	Stat     Stat
}

// Encode implements Record.
func (c ChildrenStat) Encode(w *Writer) {
	w.Strings(c.Children)
	c.Stat.Encode(w)
}

// Decode implements Decoder.
func (c *ChildrenStat) Decode(r *Reader) {
	c.Children = r.Strings()
	c.Stat.Decode(r)
}
