package safefile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// ErrNotRegular says that something else than a file stands at a path.
var ErrNotRegular = errors.New("is not a regular file")

// Dir is a directory that was looked at. Names are of files in it, without a slash.
type Dir struct {
	walker
}

// DirOf opens the directory of a file, and makes it if it is missing. name is the file's own.
func DirOf(path string, who Who) (d *Dir, name string, err error) {
	return dirOf(path, who, walker{make: true})
}

func dirOf(path string, who Who, w walker) (*Dir, string, error) {
	if !filepath.IsAbs(path) {
		abs, err := filepath.Abs(path)
		if err != nil {
			return nil, "", err
		}
		path = abs
	}
	w.who, w.root = who, os.Geteuid() == 0
	d := &Dir{w}
	name, err := d.walk(path)
	if err != nil {
		d.Close()
		return nil, "", err
	}
	return d, name, nil
}

// Open opens a regular file of any user to read it.
func Open(path string, who Who) (*os.File, error) {
	d, name, err := dirOf(path, who, walker{follow: true})
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return d.Open(name, unix.O_RDONLY, 0)
}

// Close is done once; a Dir that is closed is of no use.
func (d *Dir) Close() {
	if d.fd >= 0 {
		_ = unix.Close(d.fd)
		d.fd = -1
	}
}

// Open opens a regular file, follows no link and waits for nobody.
func (d *Dir) Open(name string, flags int, mode uint32) (*os.File, error) {
	at := filepath.Join(d.at, name)
	for range mostSwaps {
		fd, err := unix.Openat(d.fd, name, flags|unix.O_CLOEXEC|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY, mode)
		if err == unix.ENXIO || err == unix.EISDIR {
			return nil, fmt.Errorf("%s %w", at, ErrNotRegular)
		}
		if err != nil {
			return nil, &fs.PathError{Op: "open", Path: at, Err: err}
		}
		switch err := d.regular(fd, name, at); {
		case err == nil:
			return os.NewFile(uintptr(fd), at), nil
		case !errors.Is(err, errSwapped):
			_ = unix.Close(fd)
			return nil, err
		}
		_ = unix.Close(fd)
	}
	return nil, &Refused{at, "becomes another file while it is opened", "find out who renames or links it"}
}

// errSwapped says that the name leads elsewhere than when it was opened, as after a rotation.
var errSwapped = errors.New("was swapped")

func (d *Dir) regular(fd int, name, at string) error {
	var st unix.Stat_t
	switch err := unix.Fstat(fd, &st); {
	case err != nil:
		return &fs.PathError{Op: "stat", Path: at, Err: err}
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		return fmt.Errorf("%s %w", at, ErrNotRegular)
	case !d.root || d.private():
		return nil
	case st.Nlink > 1:
		why := fmt.Sprintf("has %d names (hard links), and users other than root may write to its directory", st.Nlink)
		return &Refused{at, why, "remove it"}
	case !d.who.trusted(st.Uid) && !squashed(fd, st.Uid):
		why := "belongs to " + user(st.Uid) + ", and users other than root may write to its directory"
		return &Refused{at, why, fmt.Sprintf("chown %d %s", d.who.UID, at)}
	}
	return d.kept(fd, name)
}

// kept returns errSwapped unless a file that had one name still has the one by which it was opened. With fs.protected_hardlinks=0 it may be
// root's file of another directory, whose second name here is being removed: the kernel counts that off first, while it keeps this
// directory locked, and fstatat of the name can see both sides of that. So we wait until it is unlocked, as reading it does. A name that
// was removed stays so for a descriptor, though another one like it was made.
func (d *Dir) kept(fd int, name string) error {
	dir, err := unix.Openat(d.fd, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err == nil {
		_, err = unix.ReadDirent(dir, make([]byte, 4096))
		_ = unix.Close(dir)
	}
	if err != nil {
		return &fs.PathError{Op: "open", Path: d.at, Err: err}
	}
	for range mostMoves { // the directory may be on the move itself
		here, err := os.Readlink(inProc(d.fd))
		if err != nil {
			return err
		}
		now, err := os.Readlink(inProc(fd))
		if err == nil && now == filepath.Join(here, name) {
			return nil
		}
		if err != nil || filepath.Base(now) != name { // the kernel adds " (deleted)"
			return errSwapped
		}
	}
	return errSwapped
}

func inProc(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

// List reads the directory.
func (d *Dir) List() ([]fs.DirEntry, error) {
	fd, err := unix.Openat(d.fd, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: d.at, Err: err}
	}
	f := os.NewFile(uintptr(fd), inProc(fd)) // by which a file system that tells no types is asked for them
	defer f.Close()
	return f.ReadDir(-1)
}

// Rename moves a file within the directory.
func (d *Dir) Rename(from, to string) error {
	if err := unix.Renameat(d.fd, from, d.fd, to); err != nil {
		return &os.LinkError{Op: "rename", Old: filepath.Join(d.at, from), New: to, Err: err}
	}
	return nil
}

// Remove removes a file, not a directory.
func (d *Dir) Remove(name string) error {
	if err := unix.Unlinkat(d.fd, name, 0); err != nil {
		return &fs.PathError{Op: "remove", Path: filepath.Join(d.at, name), Err: err}
	}
	return nil
}
