package safefile

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Purpose is what a file is for, which decides what others may do with it.
type Purpose int

// The uses.
const (
	Setting Purpose = iota // a config, an authority, known hosts: nobody else may write
	Command                // the same; but Debian's staff, who may become root as Debian says, may write in /usr/local
	Secret                 // nobody else may read it either
)

// Own returns the first thing on the way to a file that is not ours alone, and what mends it. The rule is
// ssh's: the file and each folder up to / belong to root or us, and nobody else may write. Links are followed:
// the folders in which they are count, and those of what they lead to. Where nothing is there, nothing is
// wrong. Others cannot undo this: only those whom it lets through could have changed the path before.
func Own(path string, use Purpose) error {
	_, err := use.walk(path)
	return err
}

// Foreign is what Own found.
type Foreign string

func (f Foreign) Error() string { return string(f) }

// OpenOwn opens a file to read it that is ours alone. It is the one that was judged, whatever others had at its path before.
func OpenOwn(path string, use Purpose) (*os.File, error) {
	for range mostSwaps {
		info, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		if !info.Mode().IsRegular() && !info.IsDir() {
			return nil, fmt.Errorf("%s %w", path, ErrNotRegular)
		}
		judged, err := use.walk(path) // before it is opened: a device does something then
		if err != nil {
			return nil, err
		}
		if judged == nil {
			continue
		}
		file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
		if err != nil {
			return nil, err
		}
		var opened unix.Stat_t
		if err := unix.Fstat(int(file.Fd()), &opened); err == nil && opened.Dev == judged.Dev && opened.Ino == judged.Ino {
			return file, nil
		}
		file.Close()
	}
	return nil, &Refused{path, "becomes another file while it is opened", "find out who renames or links it"}
}

// walk is Own, and returns what the path leads to; nil: nothing is there.
func (use Purpose) walk(path string) (*unix.Stat_t, error) {
	if !filepath.IsAbs(path) {
		dir, err := os.Getwd()
		if err != nil {
			return nil, err
		}
		path = dir + "/" + path // not Join: what .. leads to is known once the link before it is read
	}
	at, parts := "/", append([]string{"."}, split(path)...) // the root itself first
	var st unix.Stat_t
	for range mostSteps {
		if len(parts) == 0 {
			return &st, nil
		}
		here, rest := filepath.Join(at, parts[0]), parts[1:]
		if unix.Lstat(here, &st) != nil {
			return nil, nil
		}
		if err := use.check(here, &st, len(rest) == 0); err != nil {
			return nil, err
		}
		if st.Mode&unix.S_IFMT != unix.S_IFLNK {
			at, parts = here, rest
			continue
		}
		target, err := os.Readlink(here)
		if err != nil {
			return nil, nil
		}
		if filepath.IsAbs(target) {
			at = "/"
		}
		parts = append(split(target), rest...)
	}
	return nil, nil // links that lead in a circle: nothing is there
}

const staff = 50 // Debian's group for /usr/local

// check looks at one thing on the way; last: it is what the path names.
func (use Purpose) check(here string, st *unix.Stat_t, last bool) error {
	kind, mode := st.Mode&unix.S_IFMT, st.Mode&0o7777
	secret := use == Secret && last && kind != unix.S_IFLNK
	shared := kind == unix.S_IFDIR && (mode&unix.S_ISVTX != 0 || here == "/tmp")
	excess, do, mount := mode&0o022, "write to", here
	switch {
	case kind == unix.S_IFLNK: // it has no mode; its mount is its folder's
		excess, mount = 0, filepath.Dir(here)
	case secret:
		excess, do = mode&0o077, "read"
		if st.Uid == 0 && os.Geteuid() != 0 { // root lets us read it by our group, as by an fsGroup of Kubernetes
			excess &^= 0o040
		}
	case shared && !last: // without its sticky bit all of the machine is open
		excess = 0
	case use == Command && st.Gid == staff && strings.HasPrefix(here+"/", "/usr/local/"):
		excess &^= 0o020
	}
	switch {
	case ours(st.Uid) && excess == 0, !secret && readOnly(mount): // as a ConfigMap in a container, or a checkout of a user of its host
		return nil
	case !ours(st.Uid) && kind == unix.S_IFLNK:
		return foreignf("%s is a link of %s, who can change it: chown -h %d %s", here, user(st.Uid), os.Geteuid(), here)
	case !ours(st.Uid) && kind == unix.S_IFDIR:
		return foreignf("%s belongs to %s, who can change what is in it: chown %d %s, or use a file elsewhere",
			here, user(st.Uid), os.Geteuid(), here)
	case !ours(st.Uid):
		return foreignf("%s belongs to %s, who can change it: chown %d %s", here, user(st.Uid), os.Geteuid(), here)
	}
	mend := fmt.Sprintf("chmod %o %s", mode&^excess, here)
	switch {
	case shared: // the programs of all users need it as it is
		mend = "use a directory elsewhere"
	case kind != unix.S_IFREG && kind != unix.S_IFDIR: // as they need a device
		mend = "name a regular file"
	}
	return foreignf("%s belongs to %s and group %d, and its mode %04o lets others %s it: %s", here, user(st.Uid), st.Gid, mode, do, mend)
}

func foreignf(format string, args ...any) error { return Foreign(fmt.Sprintf(format, args...)) }

// readOnly reports whether a file is on a mount on which nobody here can write.
func readOnly(path string) bool {
	var at unix.Statfs_t
	return unix.Statfs(path, &at) == nil && at.Flags&unix.ST_RDONLY != 0
}
