package jute

// Identity is one of a connection's identities, as whoAmI shows it.
type Identity struct{ Scheme, User string }

// Identities is the answer of whoAmI.
type Identities []Identity

// Encode implements Record.
func (l Identities) Encode(w *Writer) {
	w.Count(len(l))
	for _, id := range l {
		w.String(id.Scheme)
		w.String(id.User)
	}
}

// Decode implements Decoder.
func (l *Identities) Decode(r *Reader) {
	*l = nil
	for range r.Count(8) {
		*l = append(*l, Identity{r.String(), r.String()})
	}
}

// Reconfig asks for other members of the ensemble.
type Reconfig struct {
	Joining, Leaving, Members string
	Config                    int64
}

// Encode implements Record.
func (c Reconfig) Encode(w *Writer) {
	w.String(c.Joining)
	w.String(c.Leaving)
	w.String(c.Members)
	w.Int64(c.Config)
}

// Decode implements Decoder.
func (c *Reconfig) Decode(r *Reader) {
	c.Joining, c.Leaving, c.Members, c.Config = r.String(), r.String(), r.String(), r.Int64()
}

// Token is what SASL's two sides tell each other.
type Token []byte

// Encode implements Record.
func (t Token) Encode(w *Writer) { w.Buffer(t) }

// Decode implements Decoder.
func (t *Token) Decode(r *Reader) { *t = r.Buffer() }
