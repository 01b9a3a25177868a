package main

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"understudy/supervisor/testbed/kit/tick"
)

// mutexFD is where every process of a run finds the open file whose lock they share: the kernel gives it up when the last
// of them is gone, and not before.
const mutexFD = 3

// mutex takes the lock that the word mutex names, or notes in a file beside it that somebody else still has it: then two
// runs have living processes at this instant, however short. It returns what forked processes inherit.
func mutex(id tick.ID, path string) ([]*os.File, error) {
	if path == "" {
		return nil, nil
	}
	if id.Kind != "main" {
		return []*os.File{os.NewFile(mutexFD, path)}, nil
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, fmt.Errorf("open mutex: %w", err)
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return []*os.File{f}, deny(path+".denied", id)
	}
	return []*os.File{f}, err
}

func deny(path string, id tick.ID) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o666)
	if err != nil {
		return fmt.Errorf("note a denial: %w", err)
	}
	defer f.Close()
	_, err = fmt.Fprintf(f, "%d %s %d %s\n", tick.Now(), id.Node, id.Token, id.Run)
	return err
}
