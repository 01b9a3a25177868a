package keyfile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"understudy/supervisor/wait"
)

// ErrLocked says that another process has a store's lock.
var ErrLocked = errors.New("another process is at it")

// lockAgain is how often a lock that another process has is tried again.
const lockAgain = 5 * time.Millisecond

// Lock excludes other processes, and other stores of the same file, until unlock or the end of this process. Nothing stays where the
// store's file is gone by then.
func (s *Store) Lock(ctx context.Context) (unlock func(), err error) {
	name := s.Name + ".lock"
	got, err := s.hold(ctx, name, func(file *os.File) ([]byte, error) {
		return nil, unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	})
	return func() { s.leave(got.file, name, s.Name) }, err
}

// Share counts this process among those that hold the store's file, until release or its end. The first of them leaves words there, which
// the others are told; nil: this is the first. Words of two processes differ.
func (s *Store) Share(ctx context.Context, words string) (first []byte, release func(), err error) {
	got, err := s.hold(ctx, s.Name, func(file *os.File) ([]byte, error) {
		alone := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil
		if alone {
			_, err := file.WriteAt([]byte(words), 0)
			if err = errors.Join(err, file.Truncate(int64(len(words)))); err != nil {
				return nil, err
			}
		}
		// This gives an exclusive lock away for a moment, in which another process may leave its own words.
		if err := unix.Flock(int(file.Fd()), unix.LOCK_SH|unix.LOCK_NB); err != nil {
			return nil, err
		}
		said, err := io.ReadAll(io.NewSectionReader(file, 0, mostWords))
		if alone && string(said) == words {
			said = nil
		}
		return said, err
	})
	return got.said, func() { s.leave(got.file, s.Name, "") }, err
}

const mostWords = 64 << 10

// locked is a file whose lock this process has, and what it said then.
type locked struct {
	file *os.File
	said []byte
}

// hold tries take on a file until it gets the lock, and until that file is the one that others find.
func (s *Store) hold(ctx context.Context, name string, take func(*os.File) ([]byte, error)) (locked, error) {
	for tried := false; ; tried = true {
		got, err := touch(ctx, s, func() (locked, error) { return s.take(name, take) }, func(late locked) { late.file.Close() })
		if err == nil {
			return got, nil
		}
		switch taken := errors.Is(err, unix.EWOULDBLOCK) || errors.Is(err, unix.EINTR); {
		case !taken && ctx.Err() == nil:
			return got, fmt.Errorf("lock %s: %w", s.Path(), err)
		case !taken && !tried:
			return got, fmt.Errorf("open %s/%s: %w: %w", s.Dir, name, wait.ErrNoAnswer, err)
		case !wait.For(ctx, lockAgain):
			return got, fmt.Errorf("%w: %w", ErrLocked, context.Cause(ctx))
		}
	}
}

// take is one attempt of hold.
func (s *Store) take(name string, take func(*os.File) ([]byte, error)) (got locked, err error) {
	if s.hangs != nil {
		s.hangs()
	}
	if err := os.MkdirAll(s.Dir, 0o755); err != nil {
		return got, err
	}
	folder, err := Folder(s.Dir, false)
	if err != nil {
		return got, err
	}
	defer folder.Close()
	if got.file, err = folder.OpenFile(name, os.O_RDWR|os.O_CREATE|unix.O_CLOEXEC, 0o600); err != nil {
		return got, err
	}
	if got.said, err = take(got.file); err == nil && !finds(folder, got.file, name) {
		err = unix.EWOULDBLOCK
	}
	if err != nil {
		got.file.Close()
	}
	return got, err
}

// finds reports whether who opens the name now gets this file: whoever held it before may have removed it.
func finds(folder *os.Root, file *os.File, name string) bool {
	own, err := file.Stat()
	there, gone := folder.Lstat(name)
	return err == nil && gone == nil && os.SameFile(own, there)
}

// leave gives a lock back. Its file is removed, unless another process has it, or the one that it is for is there.
func (s *Store) leave(file *os.File, name, of string) {
	ctx, cancel := context.WithTimeout(context.Background(), leaveWithin)
	defer cancel()
	var begun atomic.Bool
	_, _ = touch(ctx, s, func() (struct{}, error) {
		begun.Store(true)
		defer file.Close()
		// After the removal, however long that takes: who gets the lock then finds
		// another file. A process that is forked now may have the file open.
		defer func() { _ = unix.Flock(int(file.Fd()), unix.LOCK_UN) }()
		folder, err := Folder(s.Dir, false)
		if err != nil {
			return struct{}{}, err
		}
		defer folder.Close()
		if _, err := folder.Lstat(of); of != "" && !errors.Is(err, fs.ErrNotExist) {
			return struct{}{}, err
		}
		if unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil || !finds(folder, file, name) {
			return struct{}{}, nil
		}
		return struct{}{}, folder.Remove(name)
	}, nil)
	if !begun.Load() { // the disk does not answer
		file.Close()
	}
}

const leaveWithin = time.Second

// Held reports whether a process holds the store's file, as Share does, or may do so where the disk does not answer.
func (s *Store) Held() bool {
	held, err := touch(context.Background(), s, s.held, nil)
	return held || errors.Is(err, wait.ErrNoAnswer)
}

func (s *Store) held() (bool, error) {
	folder, err := Folder(s.Dir, false)
	if err != nil {
		return false, err
	}
	defer folder.Close()
	file, err := folder.Open(s.Name)
	if err != nil {
		return false, err
	}
	defer file.Close()
	return errors.Is(unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB), unix.EWOULDBLOCK), nil
}
