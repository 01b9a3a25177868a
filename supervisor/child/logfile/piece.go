package logfile

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"understudy/supervisor/safefile"
)

// piece is the log, or what was rotated away from it.
type piece struct {
	*os.File
	info   os.FileInfo
	packed bool
}

// openPiece opens a regular file, and waits for none that is a pipe.
func openPiece(name string, who safefile.Who) (piece, error) {
	f, err := safefile.Open(name, who)
	if errors.Is(err, fs.ErrPermission) {
		return piece{}, fmt.Errorf("you may not read %s: run it as root, or as a user who may", name)
	} else if errors.Is(err, safefile.ErrNotRegular) {
		return piece{}, fmt.Errorf("%s is not a regular file", name)
	} else if err != nil {
		return piece{}, err
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return piece{}, err
	}
	return piece{f, info, strings.HasSuffix(name, ".gz")}, nil
}

// older opens what was rotated away from a log, newest first, and hands each on until that returns false. The newest is left
// out, which may be rotated away meanwhile.
func older(path string, who safefile.Who, newest piece, use func(piece) (more bool, err error)) error {
	var seen []os.FileInfo
	if newest.File != nil {
		seen = append(seen, newest.info)
	}
	patience := 100
	for n := 1; ; n++ {
		p, err := openRotated(path, who, n)
		if errors.Is(err, fs.ErrNotExist) {
			if patience == 0 || !isRotated(path, who, n+1) {
				return nil
			}
			patience-- // they are just being put one further, the oldest first, or somebody has removed one for good
			n--
			time.Sleep(time.Millisecond)
			continue
		} else if err != nil {
			return err
		}
		more := true
		if !known(seen, p.info) { // else it was put one further meanwhile
			more, err = use(p)
		}
		seen = append(seen, p.info)
		p.Close()
		if err != nil || !more {
			return err
		}
	}
}

// openRotated opens what was put aside n times, be it compressed by now or not.
func openRotated(path string, who safefile.Who, n int) (piece, error) {
	p, err := openPiece(rotatedName(path, n, false), who)
	if errors.Is(err, fs.ErrNotExist) {
		return openPiece(rotatedName(path, n, true), who)
	}
	return p, err
}

func isRotated(path string, who safefile.Who, n int) bool {
	p, err := openRotated(path, who, n)
	if err == nil {
		p.Close()
	}
	return !errors.Is(err, fs.ErrNotExist)
}

func known(seen []os.FileInfo, info os.FileInfo) bool {
	for _, s := range seen {
		if os.SameFile(s, info) {
			return true
		}
	}
	return false
}

// lastLines is the end of a log, of so many lines, taken from rotated files where the newest has too few. The newest is
// left open, to be closed; what comes later begins at its size as it was found. It has no File when it is missing.
func lastLines(path string, who safefile.Who, lines int) (text []byte, newest piece, err error) {
	newest, missing := openPiece(path, who)
	if missing != nil && !errors.Is(missing, fs.ErrNotExist) {
		return nil, newest, missing
	}
	if missing == nil {
		if text, err = newest.last(lines); err != nil {
			return nil, newest, err
		}
	}
	left := lines - countLines(text)
	err = older(path, who, newest, func(p piece) (bool, error) {
		if missing = nil; left <= 0 {
			return false, nil
		}
		part, err := p.last(left)
		text = append(part, text...)
		left -= countLines(part)
		return true, err
	})
	if err == nil {
		err = missing
	}
	return text, newest, err
}

func countLines(text []byte) int {
	n := bytes.Count(text, []byte{'\n'})
	if len(text) > 0 && text[len(text)-1] != '\n' {
		n++
	}
	return n
}

// last is the end of one file.
func (p piece) last(lines int) (text []byte, err error) {
	if p.packed {
		return p.unpack(lines)
	}
	const chunk = 64 << 10
	at := p.info.Size()
	for at > 0 && countLines(text) <= lines { // one more than wanted: the first may have begun before
		n := min(chunk, at)
		more := make([]byte, n, int(n)+len(text))
		if _, err := p.ReadAt(more, at-n); err != nil {
			return nil, fmt.Errorf("read %s: %w", p.Name(), err)
		}
		text, at = append(more, text...), at-n
	}
	return cutLines(text, lines), nil
}

// cutLines leaves the last lines.
func cutLines(text []byte, lines int) []byte {
	for n := countLines(text); n > lines; n-- {
		text = text[bytes.IndexByte(text, '\n')+1:]
	}
	return text
}

// unpack reads all of a compressed file, and keeps its last lines.
func (p piece) unpack(lines int) ([]byte, error) {
	unpacked, err := gzip.NewReader(p)
	if err != nil {
		return nil, fmt.Errorf("unpack %s: %w", p.Name(), err)
	}
	var text []byte
	chunk := make([]byte, 256<<10)
	for {
		n, err := unpacked.Read(chunk)
		text = append(text, chunk[:n]...)
		if len(text) > 4<<20 || err != nil {
			text = bytes.Clone(cutLines(text, lines))
		}
		if errors.Is(err, io.EOF) {
			return text, nil
		} else if err != nil {
			return nil, fmt.Errorf("unpack %s: %w", p.Name(), err)
		}
	}
}
