package keyfile

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"understudy/supervisor/wait"
)

// Store is a file in which this process leaves something to its successor, in a folder that nobody else can change. The file system may
// hang: nobody waits for longer than answerWithin, and what was given last is what is written at last.
type Store struct {
	Dir, Name string
	Durable   bool // what was saved outlasts a loss of power

	hangs func() // of a test: a file system that does not answer

	mu      sync.Mutex // guards the fields below
	next    *[]byte
	waiting []chan<- error
	busy    bool
}

// Path is the file.
func (s *Store) Path() string { return filepath.Join(s.Dir, s.Name) }

const answerWithin = 10 * time.Second

// ErrNoAnswer says that a file system does not answer.
var ErrNoAnswer = fmt.Errorf("the file system does not answer: waited for %v", answerWithin)

// Load reads the file. The error is fs.ErrNotExist where there is none.
func (s *Store) Load() ([]byte, error) {
	ctx, cancel := context.WithTimeoutCause(context.Background(), answerWithin, ErrNoAnswer)
	defer cancel()
	return wait.Call(ctx, s.read, nil)
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
	limit := time.NewTimer(answerWithin)
	defer limit.Stop()
	select {
	case err := <-done:
		return err
	case <-limit.C:
		return ErrNoAnswer
	}
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
