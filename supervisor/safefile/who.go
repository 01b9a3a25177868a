package safefile

import (
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Who is the user that a program runs as. The zero Who is root.
type Who struct{ UID uint32 }

// Refused is what was found on the way to a file.
type Refused struct{ Path, Why, Do string }

func (r *Refused) Error() string { return fmt.Sprintf("refused: %s %s: %s", r.Path, r.Why, r.Do) }

// trusted reports whether root may go where uid rules.
func (w Who) trusted(uid uint32) bool { return uid == w.UID || ours(uid) }

// ours reports whether uid is root, this process, or the user who became root by sudo.
func ours(uid uint32) bool {
	if uid == 0 || uid == uint32(os.Geteuid()) {
		return true
	}
	sudo, err := strconv.ParseUint(os.Getenv("SUDO_UID"), 10, 32)
	return err == nil && os.Geteuid() == 0 && uint32(sudo) == uid
}

// squashed reports whether a file may be root's own on a server that does not let root be root (root_squash).
func squashed(fd int, uid uint32) bool {
	const nobody = 65534
	var at unix.Statfs_t
	return uid == nobody && unix.Fstatfs(fd, &at) == nil && at.Type == unix.NFS_SUPER_MAGIC
}

func user(uid uint32) string {
	if uid == 0 {
		return "root"
	}
	return "user " + strconv.FormatUint(uint64(uid), 10)
}
