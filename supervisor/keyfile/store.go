package keyfile

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"understudy/supervisor/wait"
)

// Store is a file in which this process leaves something to its successor, in a folder that nobody else can change. The file system may
// hang: nobody waits for longer than wait.Reached does, nor while an earlier call hangs, and what was given last is what is written at
// last.
type Store struct {
	Dir, Name string
	Durable   bool // what was saved outlasts a loss of power

	hangs func() // of a test: a file system that does not answer
	reach wait.Reach
	hung  atomic.Int32 // the calls that nobody waits for any more

	mu      sync.Mutex // guards the fields below
	next    *[]byte
	waiting []chan<- error
	busy    bool
}

// Path is the file.
func (s *Store) Path() string { return filepath.Join(s.Dir, s.Name) }

// touch calls f, which touches the file system. late gets what comes when nobody waits for it any more.
func touch[T any](ctx context.Context, s *Store, f func() (T, error), late func(T)) (T, error) {
	if s.hung.Load() > 0 {
		var none T
		return none, fmt.Errorf("%s: %w", s.Dir, wait.ErrNoAnswer)
	}
	var over atomic.Bool // f has ended, or is not waited for
	v, err := wait.Reached(ctx, &s.reach, func() (T, error) {
		defer func() {
			if over.Swap(true) {
				s.hung.Add(-1)
			}
		}()
		return f()
	}, late)
	if errors.Is(err, wait.ErrNoAnswer) {
		if !over.Swap(true) {
			s.hung.Add(1)
		}
		err = fmt.Errorf("%s: %w", s.Dir, err)
	}
	return v, err
}

// Load reads the file. The error is fs.ErrNotExist where there is none.
func (s *Store) Load() ([]byte, error) { return touch(context.Background(), s, s.read, nil) }

// There reports whether there is a file, whoever's it is.
func (s *Store) There() (bool, error) {
	return touch(context.Background(), s, func() (bool, error) {
		_, err := os.Lstat(s.Path())
		return err == nil, nil
	}, nil)
}

// Save writes the file, in one step, and makes the folder for it. Without data it removes the file.
func (s *Store) Save(data []byte) error {
	done := make(chan error, 1)
	s.mu.Lock()
	s.next, s.waiting = &data, append(s.waiting, done)
	if !s.busy {
		s.busy = true
		go s.run()
	}
	s.mu.Unlock()
	_, err := touch(context.Background(), s, func() (struct{}, error) { return struct{}{}, <-done }, nil)
	return err
}

func (s *Store) run() {
	for {
		s.mu.Lock()
		data, waiting := s.next, s.waiting
		s.next, s.waiting = nil, nil
		s.busy = data != nil
		s.mu.Unlock()
		if data == nil {
			return
		}
		err := s.write(*data)
		for _, done := range waiting {
			done <- err
		}
	}
}

func (s *Store) read() ([]byte, error) {
	if s.hangs != nil {
		s.hangs()
	}
	folder, err := Folder(s.Dir, false)
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	return ReadIn(folder, s.Name)
}

func (s *Store) write(data []byte) error {
	if s.hangs != nil {
		s.hangs()
	}
	if err := os.MkdirAll(s.Dir, 0o755); err != nil {
		return err
	}
	folder, err := Folder(s.Dir, false)
	if err != nil {
		return err
	}
	defer folder.Close()
	if len(data) == 0 {
		if err := folder.Remove(s.Name); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	if err := folder.WriteFile(s.Name+"~", data, 0o600); err != nil {
		return err
	}
	if s.Durable {
		if err := syncIn(folder, s.Name+"~"); err != nil {
			return err
		}
	}
	if err := folder.Rename(s.Name+"~", s.Name); err != nil || !s.Durable {
		return err
	}
	return syncIn(folder, ".")
}

// syncIn waits until a file, or a folder, is on the disk.
func syncIn(folder *os.Root, name string) error {
	f, err := folder.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
