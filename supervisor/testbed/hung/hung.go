// Package hung has a file system that does not answer.
package hung

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"understudy/packaging/need"
	"understudy/supervisor/testbed/must"
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
		must.Report(tb, unix.Unmount(dir, unix.MNT_DETACH))
	})
	return answer
}

// Unmount mounts on a directory what hangs once it is unmounted, in the kernel, where no signal ends it, until the test ends or answer is
// called: its device's server does not answer then. The table of mounts has it no more by then. in makes a command that runs where it is to be
// mounted.
func Unmount(tb testing.TB, dir string, in func(words ...string) *exec.Cmd) (answer func()) {
	tb.Helper()
	need.These(tb, "fuse", "loop")
	image := dir + ".image"
	must.OK(tb, os.WriteFile(image, make([]byte, 1<<20), 0o600))
	device, err := exec.Command("losetup", "--find", "--show", image).Output()
	must.OK(tb, err)
	loop := strings.TrimSpace(string(device))
	server, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
	if err != nil {
		tb.Fatal("no FUSE here: ", err)
	}
	mount := in("mount", "-i", "-t", "fuseblk", "-o", "fd=3,rootmode=40000,user_id=0,group_id=0,blksize=4096", loop, dir)
	mount.ExtraFiles = []*os.File{server}
	said, err := mount.CombinedOutput()
	answer = func() { _ = server.Close() }
	tb.Cleanup(func() {
		answer()
		if said, err := exec.Command("losetup", "--detach", loop).CombinedOutput(); err != nil {
			tb.Errorf("%v: %s", err, said)
		}
	})
	if err != nil {
		tb.Fatalf("mount: %v: %s", err, said)
	}
	go serve(int(server.Fd()))
	if said, err := in("ls", dir).CombinedOutput(); err == nil { // it has begun
		tb.Fatalf("it has files: %s", said)
	}
	return answer
}

// What the kernel asks a FUSE server (linux/fuse.h).
const (
	askAttributes = 3
	askBegin      = 26 // what has not begun is not told of its end, and not waited for
	askEnd        = 38
)

// serve answers for an empty directory until its end is asked for, or its file is closed.
func serve(fd int) {
	asked, native := make([]byte, 64<<10), binary.NativeEndian
	for {
		if _, err := unix.Read(fd, asked); err != nil {
			return
		}
		failed, said := unix.Errno(0), []byte(nil)
		switch native.Uint32(asked[4:]) {
		case askBegin:
			for _, word := range []uint32{7, 12, 0, 0, 0, 4096} { // version 7.12, and how much may be written at once
				said = native.AppendUint32(said, word)
			}
		case askAttributes:
			said = make([]byte, 104)
			native.PutUint32(said[76:], unix.S_IFDIR|0o755)
		case askEnd:
			return
		default:
			failed = unix.ENOSYS
		}
		head := native.AppendUint32(nil, uint32(16+len(said)))
		head = append(native.AppendUint32(head, -uint32(failed)), asked[8:16]...) // and the request's number
		if _, err := unix.Write(fd, append(head, said...)); err != nil {
			return
		}
	}
}
