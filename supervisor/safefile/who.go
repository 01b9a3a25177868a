package safefile

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"
)

// Who is the user that a program runs as, and who may change what is his. The zero Who is root.
type Who struct {
	UID  uint32
	GIDs []uint32
}

// Refused is what was found on the way to a file.
type Refused struct{ Path, Why, Do string }

func (r *Refused) Error() string { return fmt.Sprintf("refused: %s %s: %s", r.Path, r.Why, r.Do) }

// trusted tells whether root may go where uid rules.
func (w Who) trusted(uid uint32) bool {
	return uid == w.UID || ours(uid)
}

// ours tells whether uid is root, this process, or the user who became root by sudo.
func ours(uid uint32) bool {
	if uid == 0 || uid == uint32(os.Geteuid()) || uid == overflow && nested() {
		return true
	}
	sudo, err := strconv.ParseUint(os.Getenv("SUDO_UID"), 10, 32)
	return err == nil && os.Geteuid() == 0 && uint32(sudo) == uid
}

// overflow is whose files are, in a user namespace, that belong to nobody who is in it: those of the host's root, mostly.
const overflow = 65534

// nested tells whether this process is in a user namespace that does not have all users. Who is root there is root of nothing else.
var nested = sync.OnceValue(func() bool {
	var first, outside, n uint64
	text, err := os.ReadFile("/proc/self/uid_map")
	if err != nil {
		return false
	}
	_, err = fmt.Sscan(string(text), &first, &outside, &n)
	return err == nil && (first != 0 || n < 1<<32-1)
})

// squashed tells whether a file may be root's own on a server that does not let root be root (root_squash).
func squashed(fd int, uid uint32) bool {
	var at unix.Statfs_t
	return uid == overflow && unix.Fstatfs(fd, &at) == nil && at.Type == unix.NFS_SUPER_MAGIC
}

// mayWrite tells whether the user can make, rename and remove in a directory; for root, whether anybody else can.
func (w Who) mayWrite(fd int, st *unix.Stat_t) bool {
	var at unix.Statfs_t
	switch {
	case unix.Fstatfs(fd, &at) == nil && at.Flags&unix.ST_RDONLY != 0: // as a ConfigMap in a container
		return false
	case st.Mode&0o002 != 0:
		return true
	case st.Mode&0o020 != 0 && (w.UID == 0 && st.Gid != 0 || slices.Contains(w.GIDs, st.Gid) && st.Gid != 0 || hasACL(fd)):
		return true
	case w.UID == 0:
		return st.Uid != 0 && st.Uid != uint32(os.Geteuid())
	}
	return st.Uid == w.UID
}

// hasACL tells whether the bits of the group stand for more than the group.
func hasACL(fd int) bool {
	n, err := unix.Getxattr("/proc/self/fd/"+strconv.Itoa(fd), "system.posix_acl_access", nil)
	return err == nil && n > 0
}

func user(uid uint32) string {
	if uid == 0 {
		return "root"
	}
	return "user " + strconv.FormatUint(uint64(uid), 10)
}
