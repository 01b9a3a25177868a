package kit

import (
	"errors"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"testing"
)

// Open lets every user reach a directory below the tests' own.
func Open(tb testing.TB, dir string) string {
	tb.Helper()
	for d := dir; d != "/" && d != os.TempDir(); d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o755); err != nil {
			tb.Fatal(err)
		}
	}
	return dir
}

// Share makes storage that all hosts reach, owned by the user.
func Share(tb testing.TB, name string) (dir string, uid, gid int) {
	tb.Helper()
	u, err := user.Lookup(name)
	if err != nil {
		tb.Fatal(err)
	}
	uid, errUID := strconv.Atoi(u.Uid)
	gid, errGID := strconv.Atoi(u.Gid)
	dir = filepath.Join(Open(tb, tb.TempDir()), name)
	if err := errors.Join(errUID, errGID, os.Mkdir(dir, 0o700), os.Chown(dir, uid, gid)); err != nil {
		tb.Fatal(err)
	}
	return dir, uid, gid
}
