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
)

// rotated is a file that once was the log.
type rotated struct {
	name   string
	number int
	gz     bool
}

// rotatedFiles lists them, oldest first. The caller holds mu.
func (f *file) rotatedFiles() ([]rotated, error) {
	entries, err := os.ReadDir(filepath.Dir(f.path))
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
			all = append(all, rotated{filepath.Join(filepath.Dir(f.path), entry.Name()), n, gz})
		}
	}
	slices.SortFunc(all, func(a, b rotated) int { return b.number - a.number })
	return all, nil
}

func (f *file) name(number int, gz bool) string {
	name := f.path + "." + strconv.Itoa(number)
	if gz {
		name += ".gz"
	}
	return name
}

// rotate moves everything on by one and begins a new file. It costs a few renames, however much there is to compress.
func (f *file) rotate() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	all, err := f.rotatedFiles()
	if err != nil {
		return err
	}
	for _, old := range all {
		if old.number >= f.keep {
			err = os.Remove(old.name)
		} else {
			err = os.Rename(old.name, f.name(old.number+1, old.gz))
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	if f.keep > 0 {
		err = os.Rename(f.path, f.name(1, false))
	} else {
		err = os.Remove(f.path)
	}
	if err != nil {
		return err
	}
	if err := f.open(); err != nil {
		return fmt.Errorf("after it was moved away: %w", err) // what is still open takes the lines
	}
	select {
	case f.rotated <- struct{}{}:
	default:
	}
	return nil
}

// pressing lets one file of all logs be compressed at a time.
var pressing = make(chan struct{}, 1)

// compressAll compresses what was rotated, until ctx ends.
func (f *file) compressAll(ctx context.Context) {
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

// compressOne compresses the oldest that is not. false: there is none.
func (f *file) compressOne(ctx context.Context) (bool, error) {
	select {
	case pressing <- struct{}{}:
		defer func() { <-pressing }()
	case <-ctx.Done():
		return false, ctx.Err()
	}
	source, err := f.openPlain()
	if source == nil {
		return false, err
	}
	defer source.Close()
	info, err := source.Stat()
	if err != nil {
		return false, err
	}
	draft := filepath.Join(filepath.Dir(f.path), "."+filepath.Base(f.path)+".gz.tmp")
	_ = os.Remove(draft) // of a supervisor that was killed
	defer os.Remove(draft)
	done := make(chan error, 1)
	go func() { // its thread ends with it, and so does the thread's low priority
		runtime.LockOSThread()
		_ = unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), 19)
		const process, idle = 1, 3 << 13
		_, _, _ = unix.Syscall(unix.SYS_IOPRIO_SET, process, 0, idle)
		done <- compress(ctx, source, draft, info.Mode().Perm())
	}()
	if err := <-done; err != nil {
		return false, err
	}
	return true, f.replace(draft, info)
}

func (f *file) openPlain() (*os.File, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.compress {
		return nil, nil
	}
	all, err := f.rotatedFiles()
	for _, old := range all {
		if !old.gz {
			fd, err := unix.Open(old.name, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
			if err != nil {
				return nil, &os.PathError{Op: "open", Path: old.name, Err: err}
			}
			return os.NewFile(uintptr(fd), old.name), nil
		}
	}
	return nil, err
}

func compress(ctx context.Context, source io.Reader, draft string, mode os.FileMode) error {
	to, err := os.OpenFile(draft, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
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
func (f *file) replace(draft string, plain os.FileInfo) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	all, err := f.rotatedFiles()
	for _, old := range all {
		if info, err := os.Lstat(old.name); old.gz || err != nil || !os.SameFile(info, plain) {
			continue
		}
		if err := os.Rename(draft, f.name(old.number, true)); err != nil {
			return err
		}
		return os.Remove(old.name)
	}
	return err // so much was rotated meanwhile that it is gone
}
