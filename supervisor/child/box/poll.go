package box

import (
	"os"
	"time"

	"golang.org/x/sys/unix"

	"understudy/supervisor/child/wire"
)

// A thread that waits for each program would count against the limit of tasks that the programs share; and the runtime ends a process that
// cannot get a thread that it needs.

// WaitFor waits for a process's end and reaps it. It holds a thread only where the runtime's poller cannot wait for the process: before
// Linux 5.10.
func WaitFor(process *os.Process) (*os.ProcessState, error) {
	fd, err := unix.PidfdOpen(process.Pid, unix.PIDFD_NONBLOCK) // of its own: the poller takes no descriptor that blocks
	if err == nil {
		held := os.NewFile(uintptr(fd), "pidfd")
		if conn, err := held.SyscallConn(); err == nil {
			_ = conn.Read(func(fd uintptr) bool { return wire.Readable(int(fd)) })
		}
		_ = held.Close()
	}
	return process.Wait()
}

const (
	firstLook  = time.Millisecond / 4
	lookAtMost = 20 * time.Millisecond
)

// Sleep waits for events on fd, for so long at most, without a thread: it looks again and again. A descriptor below zero is only a wait.
func Sleep(fd int, events int16, patience time.Duration) {
	fds, until := []unix.PollFd{{Fd: int32(fd), Events: events}}, time.Now().Add(patience)
	for pause := firstLook; ; pause = min(2*pause, lookAtMost) {
		if n, err := unix.Poll(fds, 0); err == nil && n > 0 {
			return
		}
		left := time.Until(until)
		if left <= 0 {
			return
		}
		time.Sleep(min(pause, left))
	}
}
