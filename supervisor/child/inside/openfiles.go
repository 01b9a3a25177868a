package inside

import (
	"slices"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"understudy/supervisor/child/box"
)

// Go raises the soft limit of open files to the hard one when a program starts. The programs, and the one that a supervisor becomes, get
// the soft limit that it was started with: those that use select(2) rely on that. Go's own forks restore it, but not ours (Fork).

// givenUp is the limit of open files that this process was started with, after Go has dropped it.
var givenUp atomic.Pointer[Limit]

// NoteOpenFiles has Go drop the limit that it raised, notes it, and raises it again.
func NoteOpenFiles() error {
	_ = syscall.Exec("", nil, nil) // a failing exec makes Go drop it, for good
	return RaiseOpenFiles()
}

// RaiseOpenFiles raises the limit again after a failed exec.
func RaiseOpenFiles() error {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil || limit.Cur == limit.Max {
		return err
	}
	givenUp.Store(&Limit{Name: "nofile", Soft: limit.Cur, Hard: limit.Max})
	return limitFiles(limit.Max, limit.Max)
}

// LowerOpenFiles has this process, which becomes another program, as few as it was started with.
func LowerOpenFiles() {
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

// AsStarted adds the soft limit of open files, and the score for a lack of memory, that this process was started with to a program's
// settings, unless they have one.
func (s Settings) AsStarted() Settings {
	if s.OOMScoreAdj == nil {
		s.OOMScoreAdj = box.Exposed()
	}
	was := givenUp.Load()
	if was == nil || slices.ContainsFunc(s.Limits, func(l Limit) bool { return l.Name == was.Name }) {
		return s
	}
	s.Limits = append(slices.Clone(s.Limits), *was)
	return s
}
