// Package hung has a file system that does not answer.
package hung

import (
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"understudy/packaging/need"
)

// Mount has everything in a directory hang, until the test ends or answer is called: its file system is one that nobody serves, and then
// fails.
func Mount(tb testing.TB, dir string) (answer func()) {
	tb.Helper()
	need.These(tb, "fuse")
	server, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
	if err != nil {
		tb.Fatal("no FUSE here: ", err)
	}
	if err := unix.Mount("hung", dir, "fuse", unix.MS_NOSUID|unix.MS_NODEV, fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0", server.Fd())); err != nil {
		_ = server.Close()
		tb.Fatal("this takes root: ", err)
	}
	answer = func() { _ = server.Close() } // all that hangs fails now
	tb.Cleanup(func() {
		answer()
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			tb.Error(err)
		}
	})
	return answer
}
