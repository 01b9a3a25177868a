package jute

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// ErrShort says that a record ends before its last field; ErrLength, that a length in it is impossible.
var (
	ErrShort  = errors.New("jute: record too short")
	ErrLength = errors.New("jute: impossible length")
)

// Reader takes the fields of a record off a byte slice, one after another. The first fault sticks: every later call
// returns a zero value, so a record is decoded without looking and Err is asked once at the end.
type Reader struct {
	rest []byte
	err  error
}

// NewReader reads b. Buffers it returns are copies, so b may be used again.
func NewReader(b []byte) *Reader { return &Reader{rest: b} }

// Err is the first fault met, or nil.
func (r *Reader) Err() error { return r.err }

// Remaining is the number of bytes not read yet.
func (r *Reader) Remaining() int { return len(r.rest) }

// Fail makes err stick unless an earlier fault has: a record's own Decode uses it for contradictions between fields.
func (r *Reader) Fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

func (r *Reader) take(n int) []byte {
	if r.err != nil {
		return nil
	}
	if n > len(r.rest) {
		r.err = ErrShort
		return nil
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}

// Bool reads one byte; anything but zero is true.
func (r *Reader) Bool() bool {
	b := r.take(1)
	return b != nil && b[0] != 0
}

// Int32 reads a big-endian int.
func (r *Reader) Int32() int32 {
	b := r.take(4)
	if b == nil {
		return 0
	}
	return int32(binary.BigEndian.Uint32(b))
}

// Int64 reads a big-endian long.
func (r *Reader) Int64() int64 {
	b := r.take(8)
	if b == nil {
		return 0
	}
	return int64(binary.BigEndian.Uint64(b))
}

// length reads the length of a buffer or string; -1 stands for null.
func (r *Reader) length() (n int, null bool) {
	l := r.Int32()
	switch {
	case r.err != nil:
		return 0, true
	case l == -1:
		return 0, true
	case l < 0:
		r.err = fmt.Errorf("%w: %d", ErrLength, l)
		return 0, true
	}
	return int(l), false
}

// Buffer reads a byte string; null is nil, and only null is.
func (r *Reader) Buffer() []byte {
	n, null := r.length()
	if null {
		return nil
	}
	b := r.take(n)
	if r.err != nil {
		return nil
	}
	return append(make([]byte, 0, n), b...)
}

// String reads a string. Null, with which nothing can be done, is a fault.
func (r *Reader) String() string {
	n, null := r.length()
	if null {
		r.Fail(ErrLength)
	}
	return string(r.take(n))
}

// Count reads the length of a vector whose elements take at least min bytes each. Null is zero, as is every
// negative number for the real server.
func (r *Reader) Count(min int) int {
	n := r.Int32()
	if r.err != nil || n < 0 {
		return 0
	}
	if int64(n)*int64(min) > int64(len(r.rest)) {
		r.err = ErrShort
		return 0
	}
	return int(n)
}

// Rest reads all that is left.
func (r *Reader) Rest() []byte { return append([]byte(nil), r.take(len(r.rest))...) }
