package keyfile

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"understudy/supervisor/wait"
)

// ErrLocked says that another process has a store's lock.
var ErrLocked = errors.New("another process is at it")

// lockAgain is how often a lock that another process has is tried again.
const lockAgain = 5 * time.Millisecond

// Lock excludes other processes, and other stores of the same file, until unlock or the end of this process.
func (s *Store) Lock(ctx context.Context) (unlock func(), err error) {
	file, err := touch(ctx, s, s.openLock, func(late *os.File) { late.Close() })
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, fmt.Errorf("open %s.lock: %w: %w", s.Path(), wait.ErrNoAnswer, err)
	case err != nil:
		return nil, err
	}
	for {
		err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return func() { file.Close() }, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			return nil, errors.Join(fmt.Errorf("lock %s: %w", s.Path(), err), file.Close())
		}
		if !wait.For(ctx, lockAgain) {
			file.Close()
			return nil, fmt.Errorf("%w: %w", ErrLocked, context.Cause(ctx))
		}
	}
}

func (s *Store) openLock() (*os.File, error) {
	if s.hangs != nil {
		s.hangs()
	}
	if err := os.MkdirAll(s.Dir, 0o755); err != nil {
		return nil, err
	}
	folder, err := Folder(s.Dir, false)
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	return folder.OpenFile(s.Name+".lock", os.O_RDWR|os.O_CREATE|unix.O_CLOEXEC, 0o600)
}
