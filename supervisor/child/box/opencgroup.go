package box

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// The path of a cgroup may come from where others can write: a breadcrumb in ZooKeeper, an agent's port. So no link on it is followed,
// what it leads to has to be a cgroup, and everything in that is reached from its open descriptor.

const dirFlags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC | unix.O_NOFOLLOW

// OpenTreeCgroup opens an existing one; an inode other than zero must be its own.
func OpenTreeCgroup(path string, inode uint64) (*TreeCgroup, error) {
	base, err := openDir(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer unix.Close(base)
	l, err := openTreeCgroupIn(base, path)
	if err != nil || inode == 0 {
		return l, err
	}
	var own unix.Stat_t
	if err := unix.Fstat(l.Dir, &own); err != nil || own.Ino != inode {
		l.Close()
		return nil, fmt.Errorf("cgroup %s is not the one that was recorded: %w", path, errors.Join(fs.ErrNotExist, err))
	}
	return l, nil
}

// openTreeCgroupIn opens it in its open base, or a run's in its open tree's.
func openTreeCgroupIn(above int, path string) (*TreeCgroup, error) {
	dir, err := cgroupIn(above, path)
	if err != nil {
		return nil, err
	}
	l := closedTreeCgroup(path)
	l.hold(dir)
	l.regain() // a program of the same user may have removed the permission, as of the files
	for _, part := range []struct {
		fd   *int
		name string
		mode int
	}{
		{&l.killer, "cgroup.kill", unix.O_WRONLY},
		{&l.events, "cgroup.events", unix.O_RDONLY},
		{&l.freezer, "cgroup.freeze", unix.O_WRONLY},
	} {
		fd, err := openBelow(dir, part.name, part.mode|unix.O_CLOEXEC|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
		if err != nil {
			l.Close()
			return nil, &fs.PathError{Op: "open", Path: filepath.Join(path, part.name), Err: err}
		}
		*part.fd = fd
	}
	return l, nil
}

func closedTreeCgroup(path string) *TreeCgroup {
	l := &TreeCgroup{Path: path, Dir: -1, killer: -1, events: -1, freezer: -1}
	l.members = nest{top: -1, dir: -1, list: -1, inside: l.Holds}
	l.inner = nest{top: -1, dir: -1, list: -1, clear: true}
	return l
}

func (l *TreeCgroup) hold(dir int) { l.Dir, l.members.top, l.inner.top = dir, dir, dir }

// OpenBase opens the cgroup above one whose path somebody else may have written, and returns its inode. A path that leads elsewhere
// than below the cgroups that are mounted here is not looked at: the file system there may be anybody's, and never answer.
func OpenBase(path string) (base int, inode uint64, err error) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return -1, 0, fmt.Errorf("cgroup mounts: %w", err)
	}
	if !BelowCgroups(path, string(mounts)) {
		return -1, 0, fmt.Errorf("%s: %w", path, ErrNoCgroup)
	}
	base, err = openDir(filepath.Dir(path))
	if err != nil {
		return -1, 0, err
	}
	var st unix.Stat_t
	err = isCgroup(base, filepath.Dir(path))
	if err == nil {
		err = unix.Fstat(base, &st)
	}
	if err != nil {
		_ = unix.Close(base)
		return -1, 0, err
	}
	return base, st.Ino, nil
}

// BelowCgroups reports whether a path is below a mount of cgroups.
func BelowCgroups(path, mounts string) bool {
	for line := range strings.Lines(mounts) {
		if _, at, ok := cgroup2Mount(line); ok && strings.HasPrefix(path, strings.TrimSuffix(at, "/")+"/") {
			return true
		}
	}
	return false
}

// openDir opens a directory to which no link leads.
func openDir(path string) (int, error) {
	at, err := unix.Open("/", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	for part := range strings.SplitSeq(path, "/") {
		if err != nil {
			break
		}
		if part == "" {
			continue
		}
		above := at
		at, err = unix.Openat(above, part, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
		_ = unix.Close(above)
	}
	if err != nil {
		return -1, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return at, nil
}

// cgroupIn opens a cgroup by its name in the open one above it.
func cgroupIn(above int, path string) (int, error) {
	name := filepath.Base(path)
	dir, err := openBelow(above, name, dirFlags, 0o700)
	if errors.Is(err, unix.EACCES) && unix.Chmod(pathOf(above), 0o700) == nil {
		dir, err = openBelow(above, name, dirFlags, 0o700)
	}
	if err != nil {
		return -1, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	if err := isCgroup(dir, path); err != nil {
		_ = unix.Close(dir)
		return -1, err
	}
	return dir, nil
}

// ErrNoCgroup says that a path leads to something else.
var ErrNoCgroup = errors.New("it is no cgroup")

func isCgroup(dir int, path string) error {
	var at unix.Statfs_t
	if err := unix.Fstatfs(dir, &at); err != nil {
		return &fs.PathError{Op: "statfs", Path: path, Err: err}
	}
	if at.Type != unix.CGROUP2_SUPER_MAGIC {
		return fmt.Errorf("%s: %w", path, ErrNoCgroup)
	}
	return nil
}

// openBelow opens what is in a cgroup. Its owner, perhaps our own user, may have removed the permission for that.
func openBelow(dir int, name string, flags int, mode uint32) (int, error) {
	fd, err := unix.Openat(dir, name, flags, 0)
	if errors.Is(err, unix.EACCES) && unix.Fchmodat(dir, name, mode, 0) == nil {
		fd, err = unix.Openat(dir, name, flags, 0)
	}
	return fd, err
}

// allow restores our permissions on an open cgroup.
func allow(dir int) {
	if unix.Faccessat(dir, ".", unix.R_OK|unix.W_OK|unix.X_OK, 0) == unix.EACCES {
		_ = unix.Fchmod(dir, 0o700) // a later failure shows
	}
}

// regain restores our permissions on the cgroup, if a program of the same user has removed them.
func (l *TreeCgroup) regain() { allow(l.Dir) }

// rmdir removes the cgroup from the one above it.
func (l *TreeCgroup) rmdir() error {
	above, err := openBelow(l.Dir, "..", dirFlags, 0o700)
	if err != nil {
		return err
	}
	defer unix.Close(above)
	allow(above)
	return unix.Unlinkat(above, filepath.Base(l.Path), unix.AT_REMOVEDIR)
}

// pathOf leads to what is open, whatever has become of its path.
func pathOf(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

func entriesOf(dir int) ([]fs.DirEntry, error) {
	fd, err := unix.Openat(dir, ".", dirFlags, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), "cgroup")
	defer f.Close()
	return f.ReadDir(-1)
}
