package jute

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// MaxFrame is the longest frame a server takes by default (jute.maxbuffer).
const MaxFrame = 0xfffff

// ErrFrame says that a frame announces an impossible length or one beyond the limit.
var ErrFrame = errors.New("jute: bad frame length")

// Unmarshal reads records one after another. The rest is ignored, as by the real server.
func Unmarshal(b []byte, records ...Decoder) error {
	r := NewReader(b)
	for _, rec := range records {
		r.Record(rec)
	}
	return r.Err()
}

// Frame writes records into one frame: the length, then the records.
func Frame(records ...Record) []byte {
	w := Writer{buf: make([]byte, 4, 128)}
	for _, rec := range records {
		w.Record(rec)
	}
	binary.BigEndian.PutUint32(w.buf, uint32(len(w.buf)-4))
	return w.buf
}

// ReadFrame reads one frame and returns its body. A limit of zero means MaxFrame. Memory is taken as the bytes
// arrive, so an announced length alone costs nothing.
func ReadFrame(r io.Reader, limit int) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	return ReadFrameBody(r, int32(binary.BigEndian.Uint32(head[:])), limit)
}

// ReadFrameBody reads the rest of a frame whose length has been read already.
func ReadFrameBody(r io.Reader, length int32, limit int) ([]byte, error) {
	if limit <= 0 {
		limit = MaxFrame
	}
	if length < 0 || int(length) > limit {
		return nil, fmt.Errorf("%w: %d", ErrFrame, length)
	}
	const step = 64 << 10
	body := make([]byte, 0, min(int(length), step))
	for len(body) < int(length) {
		n := min(int(length)-len(body), max(step, len(body)))
		start := len(body)
		body = append(body, make([]byte, n)...)
		if _, err := io.ReadFull(r, body[start:]); err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
	}
	return body, nil
}
