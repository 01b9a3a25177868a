package logfile

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"understudy/supervisor/safefile"
	"understudy/supervisor/wait"
)

// rotated is a file that once was the log.
type rotated struct {
	name   string
	number int
	gz     bool
}

// rotatedFiles lists them, oldest first. The caller holds naming.
func (f *file) rotatedFiles(dir *safefile.Dir) ([]rotated, error) {
	entries, err := dir.List()
	if err != nil {
		return nil, err
	}
	var all []rotated
	for _, entry := range entries {
		rest, ok := strings.CutPrefix(entry.Name(), filepath.Base(f.path)+".")
		if !ok || !entry.Type().IsRegular() {
			continue
		}
		digits, gz := strings.CutSuffix(rest, ".gz")
		if n, err := strconv.Atoi(digits); err == nil && n > 0 && strconv.Itoa(n) == digits {
			all = append(all, rotated{entry.Name(), n, gz})
		}
	}
	slices.SortFunc(all, func(a, b rotated) int { return b.number - a.number })
	return all, nil
}

// name is what the log is called once it was put aside so many times.
func (f *file) name(number int, gz bool) string {
	name := filepath.Base(f.path) + "." + strconv.Itoa(number)
	if gz {
		name += ".gz"
	}
	return name
}

// rotate moves everything on by one and begins a new file. It costs a few renames, however much there is to compress.
func (f *file) rotate() error {
	f.naming.Lock()
	defer f.naming.Unlock()
	f.mu.Lock()
	who, keep := f.who, f.keep
	f.mu.Unlock()
	dir, name, err := safefile.DirOf(f.path, who)
	if err != nil {
		return err
	}
	defer dir.Close()
	all, err := f.rotatedFiles(dir)
	if err != nil {
		return err
	}
	for _, old := range all {
		if old.number >= keep {
			err = dir.Remove(old.name)
		} else {
			err = dir.Rename(old.name, f.name(old.number+1, old.gz))
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	if keep > 0 {
		err = dir.Rename(name, f.name(1, false))
	} else {
		err = dir.Remove(name)
	}
	if err != nil {
		return err
	}
	if err := f.openIn(dir, name); err != nil {
		return fmt.Errorf("after it was moved away: %w", err) // what is still open takes the lines
	}
	wait.Poke(f.rotated)
	return nil
}

// pressing lets one file of all logs be compressed at a time.
var pressing = make(chan struct{}, 1)

// compressAll compresses what was rotated, until ctx ends.
func (f *file) compressAll(ctx context.Context) {
	if dir, name, err := safefile.DirOf(f.path, f.writer()); err == nil { // a supervisor that was killed may have left it
		_ = dir.Remove(draftOf(name))
		dir.Close()
	}
	for {
		for {
			more, err := f.compressOne(ctx)
			if err != nil && ctx.Err() == nil {
				f.log.Warn("a rotated log cannot be compressed", "file", f.path, "error", err)
			}
			if err != nil || !more {
				break
			}
		}
		select {
		case <-f.rotated:
		case <-ctx.Done():
			return
		}
	}
}

// draftOf is where a log's rotated file is compressed.
func draftOf(name string) string { return "." + name + ".gz.tmp" }

// compressOne compresses the oldest that is not. false: there is none.
func (f *file) compressOne(ctx context.Context) (bool, error) {
	select {
	case pressing <- struct{}{}:
		defer func() { <-pressing }()
	case <-ctx.Done():
		return false, ctx.Err()
	}
	dir, name, err := safefile.DirOf(f.path, f.writer())
	if err != nil {
		return false, err
	}
	defer dir.Close()
	source, err := f.openPlain(dir)
	if source == nil {
		return false, err
	}
	defer source.Close()
	info, err := source.Stat()
	if err != nil {
		return false, err
	}
	draft := draftOf(name)
	_ = dir.Remove(draft) // of an attempt that failed
	defer func() { _ = dir.Remove(draft) }()
	done := make(chan error, 1)
	go func() { // its thread ends with it, and so does the thread's low priority
		runtime.LockOSThread()
		_ = unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), 19)
		const process, idle = 1, 3 << 13
		_, _, _ = unix.Syscall(unix.SYS_IOPRIO_SET, process, 0, idle)
		done <- compress(ctx, source, dir, draft, info.Mode().Perm())
	}()
	if err := <-done; err != nil {
		return false, err
	}
	return true, f.replace(dir, draft, info)
}

// openPlain opens the oldest file that is not compressed. One that is larger than a rotation leaves it is none of ours, or what no
// rotation could end: it stays as it is, so that a sparse file of a program's user does not keep all other logs waiting.
func (f *file) openPlain(dir *safefile.Dir) (*os.File, error) {
	f.mu.Lock()
	press, largest := f.compress, f.maxSize+longLine
	f.mu.Unlock()
	if !press {
		return nil, nil
	}
	f.naming.Lock()
	defer f.naming.Unlock()
	all, err := f.rotatedFiles(dir)
	for _, old := range all {
		if old.gz {
			continue
		}
		source, err := dir.Open(old.name, unix.O_RDONLY, 0)
		if err != nil {
			return nil, err
		}
		info, err := source.Stat()
		if err == nil && info.Size() <= largest {
			return source, nil
		}
		_ = source.Close()
		if err != nil {
			return nil, err
		}
	}
	return nil, err
}

func compress(ctx context.Context, source io.Reader, dir *safefile.Dir, draft string, mode os.FileMode) error {
	to, err := dir.Open(draft, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL, uint32(mode))
	if err != nil {
		return err
	}
	packed := gzip.NewWriter(to)
	buf := make([]byte, 128<<10)
	for err == nil && ctx.Err() == nil {
		var n int
		n, err = source.Read(buf)
		if _, failed := packed.Write(buf[:n]); failed != nil {
			err = failed
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return errors.Join(err, ctx.Err(), packed.Close(), to.Close())
}

// replace puts the compressed file in the place that the plain one has by now.
func (f *file) replace(dir *safefile.Dir, draft string, plain os.FileInfo) error {
	f.naming.Lock()
	defer f.naming.Unlock()
	all, err := f.rotatedFiles(dir)
	for _, old := range all {
		if old.gz || !dir.Same(old.name, plain) {
			continue
		}
		if err := dir.Rename(draft, f.name(old.number, true)); err != nil {
			return err
		}
		return dir.Remove(old.name)
	}
	return err // so much was rotated meanwhile that it is gone
}
