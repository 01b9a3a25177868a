package child

import (
	"os"
	"runtime"
	"slices"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"understudy/supervisor/child/box"
	"understudy/supervisor/child/inside"
)

// Go raises the soft limit of open files to the hard one when a program starts. The programs, and the one that it becomes, get the soft
// limit that it was started with: those that use select(2) rely on that. Go's own forks restore it, but not ours (inside.Fork).

// givenUp is the limit of open files that this process was started with, after Go has dropped it.
var givenUp atomic.Pointer[inside.Limit]

// takeFiles has Go drop the limit that it raised, notes it, and raises it again.
func takeFiles() error {
	_ = syscall.Exec("", nil, nil) // a failing exec makes Go drop it, for good
	return regainFiles()
}

// regainFiles raises the limit again after a failed exec.
func regainFiles() error {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil || limit.Cur == limit.Max {
		return err
	}
	givenUp.Store(&inside.Limit{Name: "nofile", Soft: limit.Cur, Hard: limit.Max})
	return limitFiles(limit.Max, limit.Max)
}

// dropFiles has this process, which becomes another program, as few as it was started with.
func dropFiles() {
	if was := givenUp.Load(); was != nil {
		_ = limitFiles(was.Soft, was.Hard) // it may always be lowered
	}
}

// limitFiles is not syscall.Setrlimit, which also changes what Go knows of the limit.
func limitFiles(soft, hard uint64) error {
	limit := unix.Rlimit{Cur: soft, Max: hard}
	if _, _, errno := unix.RawSyscall6(unix.SYS_PRLIMIT64, 0, unix.RLIMIT_NOFILE, uintptr(unsafe.Pointer(&limit)), 0, 0, 0); errno != 0 {
		return errno
	}
	return nil
}

// filesAsStarted adds the soft limit of open files that this process was started with to a program's settings, unless they have one.
func filesAsStarted(s inside.Settings) inside.Settings {
	was := givenUp.Load()
	if was == nil || slices.ContainsFunc(s.Limits, func(l inside.Limit) bool { return l.Name == was.Name }) {
		return s
	}
	s.Limits = append(slices.Clone(s.Limits), *was)
	return s
}

const (
	mostProcessors    = 4      // of a supervisor, which has little to compute: each may take a thread at any moment
	supervisorThreads = 12 + 6 // for the calls that box limits; for signals, logs, files, and other calls into the kernel
)

// KeepThreads makes threads beforehand, so that this process, a supervisor, has them when the kernel may refuse new ones: for its work
// at the limit, and above all for ending programs.
func KeepThreads() {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(min(mostProcessors, runtime.GOMAXPROCS(0)))
	}
	box.ReserveThreads(supervisorThreads)
}
