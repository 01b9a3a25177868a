// Package stuck makes calls into the kernel hang, as a hostile program can.
package stuck

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"understudy/supervisor/testbed/must"
)

const (
	uffdAPI      = 0xc018aa3f // UFFDIO_API
	uffdRegister = 0xc020aa00 // UFFDIO_REGISTER
)

// Hangs reports whether a thread of this process is where no signal ends it.
func Hangs() bool {
	threads, _ := filepath.Glob("/proc/self/task/*/stat")
	return slices.ContainsFunc(threads, func(at string) bool {
		text, _ := os.ReadFile(at)
		return bytes.Contains(text, []byte(") D "))
	})
}

// Pipe has a writer keep a pipe's mutex until free: its memory has a page that does not come. Each read of the pipe hangs meanwhile, that of a
// non-blocking descriptor, too, and no signal ends it. This takes root; an ordinary user can do the same with memory of a FUSE file.
func Pipe(tb testing.TB, w *os.File) (free func()) {
	tb.Helper()
	fd, _, errno := unix.Syscall(unix.SYS_USERFAULTFD, unix.O_CLOEXEC, 0, 0)
	if errno != 0 {
		tb.Fatal("userfaultfd: ", errno)
	}
	page, err := unix.Mmap(-1, 0, os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	must.OK(tb, err)
	api := struct{ api, features, ioctls uint64 }{api: 0xaa}
	register := struct{ start, size, mode, ioctls uint64 }{uint64(uintptr(unsafe.Pointer(&page[0]))), uint64(len(page)), 1, 0}
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, fd, uffdAPI, uintptr(unsafe.Pointer(&api))); errno != 0 {
		tb.Fatal("userfaultfd: ", errno)
	}
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, fd, uffdRegister, uintptr(unsafe.Pointer(&register))); errno != 0 {
		tb.Fatal("userfaultfd: ", errno)
	}
	own, err := unix.FcntlInt(w.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	must.OK(tb, err)
	written := make(chan struct{})
	go func() {
		defer close(written)
		_, _ = unix.Write(own, page)
		_ = unix.Close(own)
		_ = unix.Munmap(page)
	}()
	if _, err := unix.Read(int(fd), make([]byte, 32)); err != nil { // the page is missed: the mutex is held
		tb.Fatal(err)
	}
	var once sync.Once
	free = func() {
		once.Do(func() {
			_ = unix.Close(int(fd))
			<-written
		})
	}
	tb.Cleanup(free)
	return free
}
