package keyfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// RunVariable is an environment variable that gives the notes and sockets of supervisors another folder than /run/understudy, for what runs
// beside this machine's own supervisors: the demonstration, and tests.
const RunVariable = "UNDERSTUDY_RUN_DIR"

// Folder opens a folder, unless it cannot be trusted: somebody else than root and this process's user can put in it what they like. With
// sticky one is taken where they cannot put it in place of what is there, as in /tmp. What is done through the root is done in the
// folder that was judged, whatever its path leads to by then.
func Folder(dir string, sticky bool) (*os.Root, error) {
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0) // of a link somebody else may be the owner
	switch {
	case errors.Is(err, unix.ENOTDIR):
		return nil, &FolderError{fmt.Errorf("%s is not a directory: remove it", dir)}
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission):
		return nil, &FolderError{&fs.PathError{Op: "open", Path: dir, Err: err}}
	case err != nil:
		return nil, &fs.PathError{Op: "open", Path: dir, Err: err}
	}
	defer unix.Close(fd)
	folder, err := os.OpenRoot("/proc/self/fd/" + strconv.Itoa(fd))
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", dir, err)
	}
	if err := trusted(folder, dir, sticky); err != nil {
		return nil, errors.Join(err, folder.Close())
	}
	return folder, nil
}

// FolderError says that there is no folder in which only this user can write: nothing in it is ours. Any other error leaves that open, such
// as one of the disk, or that there are too many open files.
type FolderError struct{ error }

func (e *FolderError) Unwrap() error { return e.error }

// FolderIn opens a folder in an open one in which nobody else can write.
func FolderIn(folder *os.Root, name string) (*os.Root, error) {
	inner, err := folder.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	if err := trusted(inner, name, false); err != nil {
		return nil, errors.Join(err, inner.Close())
	}
	return inner, nil
}

func trusted(folder *os.Root, dir string, sticky bool) error {
	info, err := folder.Stat(".")
	switch {
	case err != nil:
		return fmt.Errorf("judge %s: %w", dir, err)
	case !ours(info):
		return &FolderError{fmt.Errorf("%s belongs to another user (uid %d): remove it", dir, ownerOf(info))}
	case info.Mode().Perm()&0o022 != 0 && (!sticky || info.Mode()&fs.ModeSticky == 0):
		return &FolderError{fmt.Errorf("others can write to %s: `chmod go-w %s`, or remove it", dir, dir)}
	}
	return nil
}

// ReadIn reads a file of root's or of this process's user in a folder.
func ReadIn(folder *os.Root, name string) ([]byte, error) {
	file, err := folder.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a regular file", name)
	case !ours(info):
		return nil, fmt.Errorf("%s belongs to another user (uid %d): remove it", name, ownerOf(info))
	}
	return io.ReadAll(file)
}

func ours(info fs.FileInfo) bool {
	uid := ownerOf(info)
	return uid == 0 || int(uid) == os.Geteuid()
}

func ownerOf(info fs.FileInfo) uint32 { return info.Sys().(*syscall.Stat_t).Uid }
