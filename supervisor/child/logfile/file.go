package logfile

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/sys/unix"

	"understudy/supervisor/safefile"
)

const (
	longLine    = 1 << 20
	rotateAgain = 10 * time.Second // after a rotation that failed
)

// file is the log on disk. All but reconfigure is called by one goroutine at a time.
type file struct {
	path string
	to   *os.File // nil: what is at path
	log  hclog.Logger

	f      *os.File // nil: to be opened
	line   int      // so much of a line is written
	failed time.Time
	shared bool // a reader has a lock, too

	mu      sync.Mutex // guards the fields below
	who     safefile.Who
	maxSize int64
	keep    int
}

func newFile(cfg Config) *file {
	f := &file{path: filepath.Clean(cfg.Path), to: cfg.To, log: cfg.Logger}
	f.reconfigure(cfg.Who, cfg.MaxSize, cfg.Keep)
	return f
}

func (f *file) reconfigure(who safefile.Who, maxSize int64, keep int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.who, f.maxSize, f.keep = who, maxSize, max(0, keep)
}

// writer is the user of the program that writes to it.
func (f *file) writer() safefile.Who {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.who
}

// open opens or makes the file, and takes the place of what was open.
func (f *file) open() error {
	if f.to != nil {
		return nil
	}
	dir, name, err := safefile.DirOf(f.path, f.writer())
	if err != nil {
		return err
	}
	defer dir.Close()
	return f.openIn(dir, name)
}

func (f *file) openIn(dir *safefile.Dir, name string) error {
	const flags = unix.O_WRONLY | unix.O_APPEND
	opened, err := dir.Open(name, flags, 0)
	made := false
	if errors.Is(err, fs.ErrNotExist) {
		opened, err = dir.Open(name, flags|unix.O_CREAT|unix.O_EXCL, 0o640)
		made = err == nil
	}
	switch {
	case errors.Is(err, unix.ELOOP):
		return fmt.Errorf("%w, and this is a symbolic link: name its target", ErrNotFile)
	case errors.Is(err, safefile.ErrNotRegular):
		return ErrNotFile
	case err != nil:
		return err
	}
	fd := int(opened.Fd())
	free, err := lock(fd)
	if err != nil {
		_ = opened.Close()
		return err
	}
	if !free && !f.shared {
		f.log.Warn("a reader has locked a log, which is written nevertheless", "file", f.path)
	}
	f.shared = !free
	if made {
		_ = unix.Fchmod(fd, 0o640) // whatever the supervisor's umask is
	}
	f.close()
	f.f, f.line = opened, 0
	return nil
}

// lock keeps other pumps away. It is one that takes the right to write: who may only read can have a flock(2), and a lock like this one for
// reading, which is not free, but keeps no pump away.
func lock(fd int) (free bool, err error) {
	err = unix.FcntlFlock(uintptr(fd), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_WRLCK})
	if !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EACCES) {
		return true, nil // not every file system can
	}
	other := unix.Flock_t{Type: unix.F_RDLCK} // with which only a writer's interferes
	if err := unix.FcntlFlock(uintptr(fd), unix.F_OFD_GETLK, &other); err == nil && other.Type == unix.F_WRLCK {
		return false, ErrInUse
	}
	return false, nil
}

// close gives the lock back explicitly: a process that is just being forked may have a copy of the descriptor.
func (f *file) close() {
	if f.f != nil {
		_ = unix.FcntlFlock(f.f.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_UNLCK})
		_ = f.f.Close()
		f.f = nil
	}
}

// write writes some of the batch, which is not empty, and says how much.
func (f *file) write(batch []byte) (int, error) {
	if f.to != nil {
		return f.to.Write(batch)
	}
	size, err := f.ensure()
	if err != nil {
		return 0, err
	}
	f.mu.Lock()
	limit := f.maxSize
	f.mu.Unlock()
	if limit > 0 && size > 0 && f.between() && size+int64(lineEnd(batch)) > limit && time.Since(f.failed) > rotateAgain {
		if err := f.rotate(); err != nil {
			f.failed = time.Now()
			f.log.Warn("cannot rotate a log, which keeps growing", "file", f.path, "error", err)
		} else {
			size = 0
		}
	}
	n, err := f.f.Write(f.piece(batch, size, limit))
	if end := bytes.LastIndexByte(batch[:n], '\n'); end >= 0 {
		f.line = n - end - 1
	} else {
		f.line += n
	}
	return n, err
}

// between says whether the file may end here: between two lines, or in one that is too long to wait for its end.
func (f *file) between() bool { return f.line == 0 || f.line > longLine }

// piece is what goes into the file before it is looked at again: whole lines up to the limit, but at least one.
func (f *file) piece(batch []byte, size, limit int64) []byte {
	most := len(batch)
	if limit > 0 {
		most = int(min(int64(most), max(0, limit-size)))
	}
	most = min(most, longLine)
	if most == len(batch) {
		return batch
	}
	if end := bytes.LastIndexByte(batch[:most], '\n') + 1; end > 0 {
		return batch[:end]
	}
	return batch[:min(lineEnd(batch), longLine)]
}

// lineEnd is the length of the first line.
func lineEnd(batch []byte) int {
	if end := bytes.IndexByte(batch, '\n'); end >= 0 {
		return end + 1
	}
	return len(batch)
}

// ensure sees to it that the file at the path is open, whatever others did to it, and says how large it is.
func (f *file) ensure() (size int64, err error) {
	if f.f == nil {
		if err := f.open(); err != nil {
			return 0, err
		}
	}
	own, err := f.f.Stat()
	if err != nil {
		return 0, err
	}
	if there, err := os.Lstat(f.path); f.between() && (err != nil || !os.SameFile(own, there)) {
		if err := f.open(); err == nil { // else what is still open takes the lines
			own, err = f.f.Stat()
			if err != nil {
				return 0, err
			}
		}
	}
	return own.Size(), nil
}
