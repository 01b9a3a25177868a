package cli

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"

	"understudy/supervisor/safefile"
)

// trail follows a log as it grows, over its rotations.
type trail struct {
	path  string
	who   safefile.Who
	piece piece // what is read now; no File: there is none yet
	at    int64 // so much of it is read
	out   io.Writer
	told  string       // the trouble that was told last
	tell  func(string) // for what the reader should know besides
	head  func() error // is called before something is written
}

func (t *trail) close() {
	if t.piece.File != nil {
		t.piece.Close()
	}
}

// more writes what has come since the last call.
func (t *trail) more() error {
	newest, err := openPiece(t.path, t.who)
	switch {
	case errors.Is(err, fs.ErrNotExist): // it is just being rotated, or does not exist yet
		return t.drain()
	case err != nil && err.Error() != t.told:
		t.told = err.Error()
		t.tell(t.told)
		return t.drain()
	case err != nil:
		return t.drain()
	}
	t.told = ""
	if t.piece.File != nil && os.SameFile(t.piece.info, newest.info) {
		newest.Close()
		if newest.info.Size() < t.at {
			t.tell(t.path + " was cut: reading it from its start")
			t.at = 0
		}
		return t.drain()
	}
	// The writer has begun a new file: the one before is complete.
	if err := t.drain(); err != nil {
		newest.Close()
		return err
	}
	if err := t.between(newest); err != nil {
		newest.Close()
		return err
	}
	t.close()
	t.piece, t.at = newest, 0
	return t.drain()
}

// drain writes the rest of what is read now.
func (t *trail) drain() error {
	if t.piece.File == nil {
		return nil
	}
	size := t.at
	if info, err := t.piece.Stat(); err == nil {
		size = info.Size()
	}
	if size <= t.at {
		return nil
	}
	if err := t.head(); err != nil {
		return err
	}
	n, err := io.Copy(t.out, io.NewSectionReader(t.piece, t.at, size-t.at))
	t.at += n
	if err != nil {
		return fmt.Errorf("pass on %s: %w", t.path, err)
	}
	return nil
}

// between writes what was rotated away after what was read until now and before the newest: it comes fast at times.
func (t *trail) between(newest piece) error {
	if t.piece.File == nil {
		return nil
	}
	var texts [][]byte
	found := false
	err := older(t.path, t.who, newest, func(p piece) (bool, error) {
		if found = t.piece.was(p); found {
			return false, nil
		}
		text, err := p.whole()
		texts = append(texts, text)
		return true, err
	})
	switch {
	case err != nil:
		return err
	case !found:
		t.tell(t.path + " was rotated faster than it could be read: lines are missing here")
		return nil
	}
	for _, text := range slices.Backward(texts) {
		if err := t.write(text); err != nil {
			return err
		}
	}
	return nil
}

func (t *trail) write(text []byte) error {
	if len(text) == 0 {
		return nil
	}
	if err := t.head(); err != nil {
		return err
	}
	if _, err := t.out.Write(text); err != nil {
		return fmt.Errorf("pass on %s: %w", t.path, err)
	}
	return nil
}

func (p piece) whole() ([]byte, error) {
	if p.packed {
		return p.unpack(int(^uint(0) >> 1))
	}
	text, err := io.ReadAll(p)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", p.Name(), err)
	}
	return text, nil
}

// was tells whether another piece is this one, compressed or not.
func (p piece) was(other piece) bool {
	if !other.packed {
		return os.SameFile(p.info, other.info)
	}
	now, err := p.Stat()
	if err != nil {
		return false
	}
	var size [4]byte // a gzip file ends with the size of what is in it
	if _, err := other.ReadAt(size[:], other.info.Size()-4); err != nil || binary.LittleEndian.Uint32(size[:]) != uint32(now.Size()) {
		return false
	}
	text, err := other.whole()
	if err != nil {
		return false
	}
	own, err := io.ReadAll(io.NewSectionReader(p, 0, now.Size()))
	return err == nil && bytes.Equal(own, text)
}
