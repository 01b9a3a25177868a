package safefile

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Changeable is the first thing on the way to a path that others than root, this process's user and the one who ran sudo can put
// something else in the place of, or write to; its zero value when there is none, or when nothing is there. Links are followed: what
// they lead to counts, and where they stand. Others cannot undo this: only whom it lets through could have changed the path before.
func Changeable(path string) Change {
	path, err := filepath.Abs(path)
	if err != nil {
		return Change{}
	}
	at := "/"
	parts := split(path)
	for range mostSteps {
		if len(parts) == 0 {
			return Change{}
		}
		here := filepath.Join(at, parts[0])
		var st unix.Stat_t
		if err := unix.Lstat(here, &st); err != nil {
			return Change{}
		}
		rest := parts[1:]
		if c := look(here, &st, len(rest) == 0); c.Why != "" {
			return c
		}
		if st.Mode&unix.S_IFMT != unix.S_IFLNK {
			at, parts = here, rest
			continue
		}
		target, err := os.Readlink(here)
		if err != nil {
			return Change{}
		}
		if filepath.IsAbs(target) {
			at = "/"
		}
		parts = append(split(target), rest...)
	}
	return Change{} // links that lead in a circle: nothing is there
}

// Change is how others can change a file, and what to type against it.
type Change struct {
	Why, Do string
	Owned   bool // it is, or stands in, what belongs to somebody else; modes do not speak against it
}

func look(here string, st *unix.Stat_t, last bool) Change {
	kind := st.Mode & unix.S_IFMT
	mount := here
	if kind == unix.S_IFLNK {
		mount = filepath.Dir(here)
	}
	if (!ours(st.Uid) || st.Mode&0o022 != 0) && readOnly(mount) { // as a ConfigMap in a container, or a checkout of a user of its host
		return Change{}
	}
	if !ours(st.Uid) {
		what := map[uint32]string{unix.S_IFLNK: "the link ", unix.S_IFDIR: "the directory "}[kind]
		option := ""
		if kind == unix.S_IFLNK {
			option = "-h "
		}
		return Change{fmt.Sprintf("%s can change it: %s%s is theirs", user(st.Uid), what, here), fmt.Sprintf("chown %s%d %s", option, os.Geteuid(), here), true}
	}
	if kind == unix.S_IFLNK || kind == unix.S_IFDIR && st.Mode&unix.S_ISVTX != 0 && !last {
		return Change{} // a link has no mode; in a sticky directory what is ours stays
	}
	switch {
	case !last && (here == "/tmp" || here == "/var/tmp"): // without its sticky bit everything on the machine is open
		return Change{}
	case st.Mode&0o002 != 0:
		return Change{Why: fmt.Sprintf("everybody can change it: %s has the mode %04o", here, st.Mode&0o7777), Do: "chmod o-w " + here}
	case st.Mode&0o020 != 0 && !ownGroup(here, st) || st.Mode&0o020 != 0 && listed(here):
		return Change{Why: fmt.Sprintf("the group %d can change it: %s has the mode %04o", st.Gid, here, st.Mode&0o7777), Do: "chmod g-w " + here}
	}
	return Change{}
}

// staff is Debian's group for /usr/local, where staffMark exists.
const staff = 50

var staffMark = "/etc/staff-group-for-usr-local"

// ownGroup tells whether a file's group holds nobody but its owner: root's, or one that bears the number of the user who ran sudo; or
// those whom Debian lets write in /usr/local, which is equivalent to root, as it says itself.
func ownGroup(here string, st *unix.Stat_t) bool {
	if st.Gid == staff && strings.HasPrefix(here+"/", "/usr/local/") {
		_, err := os.Stat(staffMark)
		return err == nil
	}
	return st.Gid == 0 || st.Gid == st.Uid && ours(st.Uid) && st.Uid != uint32(os.Geteuid()) || os.Geteuid() != 0 && st.Gid == uint32(os.Getegid()) && st.Uid == uint32(os.Geteuid())
}

// readOnly tells whether a file is on a mount on which nobody here can write.
func readOnly(path string) bool {
	var fs unix.Statfs_t
	return unix.Statfs(path, &fs) == nil && fs.Flags&unix.ST_RDONLY != 0
}

// listed tells whether the bits of the group stand for users and groups that an ACL names.
func listed(path string) bool {
	n, err := unix.Lgetxattr(path, "system.posix_acl_access", nil)
	return err == nil && n > 0
}
