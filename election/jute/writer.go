package jute

import (
	"encoding/binary"
	"math"
)

// Writer appends the fields of records to a byte slice.
type Writer struct{ buf []byte }

// Bool writes one byte.
func (w *Writer) Bool(v bool) {
	if v {
		w.buf = append(w.buf, 1)
		return
	}
	w.buf = append(w.buf, 0)
}

// Int32 writes a big-endian int.
func (w *Writer) Int32(v int32) { w.buf = binary.BigEndian.AppendUint32(w.buf, uint32(v)) }

// Int64 writes a big-endian long.
func (w *Writer) Int64(v int64) { w.buf = binary.BigEndian.AppendUint64(w.buf, uint64(v)) }

// Count writes the length of what follows. A longer one than the format knows is a mistake of the program.
func (w *Writer) Count(n int) {
	if n < 0 || n > math.MaxInt32 {
		panic("jute: length out of range")
	}
	w.Int32(int32(n))
}

// Buffer writes a byte string; nil is null.
func (w *Writer) Buffer(b []byte) {
	if b == nil {
		w.Int32(-1)
		return
	}
	w.Count(len(b))
	w.buf = append(w.buf, b...)
}

// String writes a string.
func (w *Writer) String(s string) {
	w.Count(len(s))
	w.buf = append(w.buf, s...)
}
