package config

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"

	"understudy/supervisor/safefile"
)

// largestFile bounds what is read of one file; a thousand services need a fifth of it.
const largestFile = 1 << 20

// disk is where files are read from.
type disk struct {
	read func(name string) ([]byte, error)
	list func(dir string) ([]fs.DirEntry, error)
}

// host is this machine's.
var host = disk{read: readFile, list: os.ReadDir}

// readFile reads a regular file whole; a FIFO or a device must not block or flood us.
func readFile(name string) ([]byte, error) {
	file, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, reason(err)
	}
	return readAll(file)
}

// readAs is readFile for a path that the user of a program may control a part of.
func readAs(name string, who safefile.Who) ([]byte, error) {
	file, err := safefile.Open(name, who)
	switch {
	case errors.Is(err, safefile.ErrNotRegular):
		return nil, errors.New("it is not a regular file")
	case err != nil:
		return nil, reason(err)
	}
	return readAll(file)
}

// readAll closes the file, too.
func readAll(file *os.File) ([]byte, error) {
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, reason(err)
	}
	if info.IsDir() {
		return nil, errors.New("it is a directory")
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("it is not a regular file")
	}
	src, err := io.ReadAll(io.LimitReader(file, largestFile+1))
	if err != nil {
		return nil, reason(err)
	}
	if len(src) > largestFile {
		return nil, errors.New("it is larger than 1 MiB")
	}
	return src, nil
}

// reason drops the operation and the name, which a fault says itself.
func reason(err error) error {
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		return at.Err
	}
	return err
}
