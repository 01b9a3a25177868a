package safefile

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	search    = unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC
	mostSteps = 1000 // of which each link adds some
	mostLinks = 40
	mostSwaps = 10  // of a file, while it is opened
	mostMoves = 200 // of its directory
)

// walker is on its way, one component at a time: no call of the kernel follows a link.
type walker struct {
	who    Who
	root   bool // this process is root's
	follow bool // the last component, too
	make   bool // directories that are missing

	fd    int // the directory where it is
	at    string
	st    unix.Stat_t
	links int
}

func (w *walker) step(fd int, at string) error {
	if w.fd >= 0 {
		_ = unix.Close(w.fd)
	}
	w.fd, w.at = fd, at
	if err := unix.Fstat(fd, &w.st); err != nil {
		return &fs.PathError{Op: "stat", Path: at, Err: err}
	}
	return nil
}

func (w *walker) top() error {
	fd, err := unix.Open("/", search|unix.O_DIRECTORY, 0)
	if err != nil {
		return &fs.PathError{Op: "open", Path: "/", Err: err}
	}
	return w.step(fd, "/")
}

// walk goes to the directory of the last component, and returns that component's name.
func (w *walker) walk(path string) (name string, err error) {
	w.fd = -1
	if err := w.top(); err != nil {
		return "", err
	}
	parts := split(filepath.Clean(path))
	for range mostSteps {
		if len(parts) == 0 {
			return ".", nil
		}
		name, rest := parts[0], parts[1:]
		last := len(rest) == 0 && name != ".."
		if last && !w.follow {
			return name, nil
		}
		here := filepath.Join(w.at, name)
		fd, err := unix.Openat(w.fd, name, search|unix.O_DIRECTORY, 0) // mounts what an automounter would
		if err == unix.ENOTDIR {
			fd, err = unix.Openat(w.fd, name, search, 0)
		}
		switch {
		case err == unix.ENOENT && last:
			return name, nil
		case err == unix.ENOENT && w.make:
			if err := unix.Mkdirat(w.fd, name, 0o750); err != nil && err != unix.EEXIST {
				return "", &fs.PathError{Op: "mkdir", Path: here, Err: err}
			}
			continue
		case err != nil:
			return "", &fs.PathError{Op: "open", Path: here, Err: err}
		}
		var st unix.Stat_t
		if err := unix.Fstat(fd, &st); err != nil {
			_ = unix.Close(fd)
			return "", &fs.PathError{Op: "stat", Path: here, Err: err}
		}
		switch st.Mode & unix.S_IFMT {
		case unix.S_IFLNK:
			target, err := w.link(fd, &st, here)
			_ = unix.Close(fd)
			if err == nil && strings.HasPrefix(target, "/") {
				err = w.top()
			}
			if err != nil {
				return "", err
			}
			parts = append(split(target), rest...)
		case unix.S_IFDIR:
			if last {
				_ = unix.Close(fd)
				return name, nil
			}
			if err := w.step(fd, here); err != nil {
				return "", err
			}
			if err := w.directory(); err != nil {
				return "", err
			}
			parts = rest
		default:
			_ = unix.Close(fd)
			if last {
				return name, nil
			}
			return "", &fs.PathError{Op: "open", Path: here, Err: unix.ENOTDIR}
		}
	}
	return "", &fs.PathError{Op: "open", Path: path, Err: unix.ELOOP}
}

// directory judges the one where it is.
func (w *walker) directory() error {
	if !w.root || w.who.trusted(w.st.Uid) || squashed(w.fd, w.st.Uid) {
		return nil
	}
	return &Refused{w.at, fmt.Sprintf("belongs to %s, who could put anything there, and root would use it", user(w.st.Uid)),
		"say `user:` for the program, or name a place that only root and its user own"}
}

// link judges one that stands where it is, and reads it.
func (w *walker) link(fd int, st *unix.Stat_t, here string) (target string, err error) {
	own := st.Uid == 0 || st.Uid == uint32(os.Geteuid())
	switch {
	case !w.root && !own && st.Uid != w.st.Uid:
		why := "is a symbolic link of " + user(st.Uid) + ", who does not own its directory"
		return "", &Refused{here, why, "remove it, or name its target"}
	case w.root && !own:
		return "", &Refused{here, "is a symbolic link of " + user(st.Uid) + ", who could point it anywhere", "name its target in its place"}
	case w.root && !w.private() && (w.who.UID != 0 || !ours(w.st.Uid) || w.st.Mode&0o002 != 0): // the group of /var/log is no service's
		return "", &Refused{here, "is a symbolic link where users other than root may write", "name its target in its place"}
	}
	if w.links++; w.links > mostLinks {
		return "", &fs.PathError{Op: "open", Path: here, Err: unix.ELOOP}
	}
	text := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(fd, "", text)
	if err != nil {
		return "", &fs.PathError{Op: "readlink", Path: here, Err: err}
	}
	return string(text[:n]), nil
}

// private reports whether nobody else than root and us may write where it is.
func (w *walker) private() bool {
	return ours(w.st.Uid) && w.st.Mode&0o022 == 0 || readOnly(inProc(w.fd))
}

func split(path string) (parts []string) {
	for part := range strings.SplitSeq(path, "/") {
		if part != "" && part != "." {
			parts = append(parts, part)
		}
	}
	return parts
}
