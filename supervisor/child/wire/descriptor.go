package wire

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// PollOne waits for events on fd. A descriptor below zero is only a wait.
func PollOne(fd int, events int16, patience time.Duration) {
	fds := []unix.PollFd{{Fd: int32(fd), Events: events}}
	for until := Now() + patience; ; patience = max(0, until-Now()) {
		ts := unix.NsecToTimespec(int64(patience))
		if _, err := unix.Ppoll(fds, &ts, nil); err != unix.EINTR {
			return
		}
	}
}

// Readable looks at a descriptor without waiting.
func Readable(fd int) bool {
	fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	n, err := unix.Poll(fds, 0)
	return err == nil && n == 1 && fds[0].Revents&unix.POLLIN != 0
}

// Using lends a file's descriptor: a Close meanwhile waits, so that its number cannot come to mean another process.
func Using(f *os.File, do func(fd int) error) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var done error
	if err := conn.Control(func(fd uintptr) { done = do(int(fd)) }); err != nil {
		return fmt.Errorf("%w: %w", os.ErrClosed, err) // the only reason there is
	}
	return done
}

// Ready is Readable for a file that may be closed meanwhile.
func Ready(f *os.File) (is bool, err error) {
	err = Using(f, func(fd int) error {
		is = Readable(fd)
		return nil
	})
	return is, err
}
