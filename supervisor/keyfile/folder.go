package keyfile

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// Folder says why a folder cannot be trusted: somebody else than root and this process's user can put in it what they like. With
// sticky that is taken where they cannot put it in place of what is there, as in /tmp.
func Folder(dir string, sticky bool) error {
	info, err := os.Lstat(dir) // of a link somebody else may be the owner
	if err != nil {
		return err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !info.IsDir() || !ok:
		return fmt.Errorf("%s is not a directory: remove it", dir)
	case stat.Uid != 0 && int(stat.Uid) != os.Geteuid():
		return fmt.Errorf("%s belongs to somebody else (uid %d): remove it", dir, stat.Uid)
	case info.Mode().Perm()&0o022 != 0 && (!sticky || info.Mode()&fs.ModeSticky == 0):
		return fmt.Errorf("others can write to %s: `chmod go-w %s`, or remove it", dir, dir)
	}
	return nil
}
