package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"understudy/supervisor/safefile"
)

// largestFile bounds what is read of one file; a thousand services need a fifth of it.
const largestFile = 1 << 20

var errDirectory = errors.New("it is a directory")

// disk is where files are read from.
type disk struct {
	read func(name string) ([]byte, error)
	list func(dir string) ([]fs.DirEntry, error)
}

// host is this machine's, for what is done as a config says: whose text root obeys is root.
var host = disk{read: readOwn, list: listOwn}

// anyones is the same, whoever can change the files.
var anyones = disk{read: readFile, list: os.ReadDir}

// readOwn reads a file. As root it reads none that others can change; who is not root is warned of it (Dangers).
func readOwn(name string) ([]byte, error) {
	if os.Geteuid() != 0 {
		return readFile(name)
	}
	if info, err := os.Stat(name); err == nil && info.IsDir() { // who can change it does not matter then
		return nil, errDirectory
	}
	return opened(safefile.OpenOwn(name, safefile.Setting))
}

func listOwn(dir string) ([]fs.DirEntry, error) {
	list, err := os.ReadDir(dir)
	if err == nil && os.Geteuid() == 0 {
		err = safefile.Own(dir, safefile.Setting)
	}
	return list, err
}

// readFile reads a regular file whole; a FIFO or a device must not block or flood us.
func readFile(name string) ([]byte, error) {
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() && !info.IsDir() { // a device does something when it is opened
		return nil, errors.New("it is not a regular file")
	}
	file, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, reason(err)
	}
	return readAll(file)
}

// readAs is readFile for a path that the user of a program may control a part of.
func readAs(name string, who safefile.Who) ([]byte, error) {
	return opened(safefile.Open(name, who))
}

func opened(file *os.File, err error) ([]byte, error) {
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
		return nil, errDirectory
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

// unread is why the named file (with a blank behind it) cannot be read, or may not be: then the reason has the name.
func unread(name string, err error) error {
	if foreign, ok := errors.AsType[safefile.Foreign](err); ok {
		return foreign
	}
	return fmt.Errorf("%scannot be read: %w", name, reason(err))
}

// reason drops the operation and the name, which a fault says itself.
func reason(err error) error {
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		return at.Err
	}
	return err
}
