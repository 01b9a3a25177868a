package kit

import (
	"errors"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"testing"

	"understudy/supervisor/testbed/must"
)

// Open lets every user reach a directory below the tests' own.
func Open(tb testing.TB, dir string) string {
	tb.Helper()
	for d := dir; d != "/" && d != os.TempDir(); d = filepath.Dir(d) {
		must.OK(tb, os.Chmod(d, 0o755))
	}
	return dir
}

// Share makes storage that all hosts reach, owned by the user.
func Share(tb testing.TB, name string) (dir string, uid, gid int) {
	tb.Helper()
	u, err := user.Lookup(name)
	must.OK(tb, err)
	uid, errUID := strconv.Atoi(u.Uid)
	gid, errGID := strconv.Atoi(u.Gid)
	dir = filepath.Join(Open(tb, tb.TempDir()), name)
	must.OK(tb, errors.Join(errUID, errGID, os.Mkdir(dir, 0o700), os.Chown(dir, uid, gid)))
	return dir, uid, gid
}
