package kit

import "encoding/binary"

// words reads the protocol's big-endian fields; after the end it yields zeros.
type words struct{ rest []byte }

func (w *words) int32() int32 {
	if len(w.rest) < 4 {
		w.rest = nil
		return 0
	}
	n := int32(binary.BigEndian.Uint32(w.rest))
	w.rest = w.rest[4:]
	return n
}

func (w *words) bytes() []byte {
	n := int(w.int32())
	if n <= 0 {
		return nil // -1 stands for none
	}
	if n > len(w.rest) {
		w.rest = nil
		return nil
	}
	b := w.rest[:n]
	w.rest = w.rest[n:]
	return b
}

func (w *words) skip(n int) { w.rest = w.rest[min(n, len(w.rest)):] }

// parseRequest reads a request from its header on.
func parseRequest(frame []byte) Request {
	w := &words{rest: frame}
	w.int32() // xid
	r := Request{Op: Op(w.int32())}
	if r.Op != OpMulti {
		switch r.Op {
		case OpPing, OpCloseSession:
		default:
			r.Path = string((&words{rest: w.rest}).bytes())
		}
		return r
	}
	for len(w.rest) > 0 {
		op := Op(w.int32())
		done := len(w.rest) > 0 && w.rest[0] != 0
		w.skip(1 + 4)
		if done {
			break
		}
		path := string(w.bytes())
		if r.Path == "" {
			r.Path = path
		}
		r.Parts = append(r.Parts, op)
		switch op {
		case OpCreate, OpCreate2:
			w.bytes()
			for n := w.int32(); n > 0 && len(w.rest) > 0; n-- { // the access list
				w.int32()
				w.bytes()
				w.bytes()
			}
			w.int32() // flags
		case OpSet:
			w.bytes()
			w.int32()
		case OpDelete, OpCheck:
			w.int32()
		default:
			return r
		}
	}
	return r
}
