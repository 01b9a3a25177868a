package logfile

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

// Reader shows a log while its writer goes on: its last lines, then what comes, over rotations.
type Reader struct {
	Path string
	Who  safefile.Who // whose program writes it
	Out  io.Writer
	Tell func(string) // for what the reader should know besides
	Head func() error // is called before something is written

	piece piece  // what is read now; no File: there is none yet
	at    int64  // so much of it is read
	told  string // the trouble that was told last
}

// Close ends the reading.
func (t *Reader) Close() {
	if t.piece.File != nil {
		t.piece.Close()
	}
}

// Last writes the last lines. With fs.ErrNotExist there are none yet: More writes them once there are.
func (t *Reader) Last(lines int) error {
	text, newest, err := lastLines(t.Path, t.Who, lines)
	if t.piece = newest; newest.File != nil {
		t.at = newest.info.Size()
	}
	if err != nil {
		return err
	}
	return t.write(text)
}

// More writes what has come since the last call.
func (t *Reader) More() error {
	newest, err := openPiece(t.Path, t.Who)
	switch {
	case errors.Is(err, fs.ErrNotExist): // it is just being rotated, or does not exist yet
		return t.drain()
	case err != nil && err.Error() != t.told:
		t.told = err.Error()
		t.Tell(t.told)
		return t.drain()
	case err != nil:
		return t.drain()
	}
	t.told = ""
	if t.piece.File != nil && os.SameFile(t.piece.info, newest.info) {
		newest.Close()
		if newest.info.Size() < t.at {
			t.Tell(t.Path + " was cut: reading it from its start")
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
	t.Close()
	t.piece, t.at = newest, 0
	return t.drain()
}

// drain writes the rest of what is read now.
func (t *Reader) drain() error {
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
	if err := t.Head(); err != nil {
		return err
	}
	n, err := io.Copy(t.Out, io.NewSectionReader(t.piece, t.at, size-t.at))
	t.at += n
	if err != nil {
		return fmt.Errorf("pass on %s: %w", t.Path, err)
	}
	return nil
}

// between writes what was rotated away after what was read until now and before the newest: it comes fast at times.
func (t *Reader) between(newest piece) error {
	if t.piece.File == nil {
		return nil
	}
	var texts [][]byte
	found := false
	err := older(t.Path, t.Who, newest, func(p piece) (bool, error) {
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
		t.Tell(t.Path + " was rotated faster than it could be read: lines are missing here")
		return nil
	}
	for _, text := range slices.Backward(texts) {
		if err := t.write(text); err != nil {
			return err
		}
	}
	return nil
}

func (t *Reader) write(text []byte) error {
	if len(text) == 0 {
		return nil
	}
	if err := t.Head(); err != nil {
		return err
	}
	if _, err := t.Out.Write(text); err != nil {
		return fmt.Errorf("pass on %s: %w", t.Path, err)
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
