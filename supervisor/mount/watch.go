package mount

import (
	"context"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Watch calls ready, and fails once the file system is mounted no more, until the context ends. The kernel says when its table has changed
// (proc_pid_mounts(5)). It does so once for each open file, and from its opening on: the look comes after that, and Go's runtime, which
// polls what package os opens, must not hear it in our place.
func (m Mount) Watch(ctx context.Context, ready func() error) error {
	table, err := unix.Open("/proc/self/mountinfo", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(table)
	over, end, err := os.Pipe()
	if err != nil {
		return err
	}
	defer over.Close()
	defer end.Close()
	defer context.AfterFunc(ctx, func() { end.Close() })()
	for ctx.Err() == nil {
		here, _, err := m.look()
		if err == nil && len(here) == 0 {
			err = fmt.Errorf("%s is not mounted on %s", m.Device, m.Directory)
		}
		if err == nil && ready != nil {
			err, ready = ready(), nil
		}
		if err != nil {
			return err
		}
		change := []unix.PollFd{{Fd: int32(table), Events: unix.POLLPRI}, {Fd: int32(over.Fd())}}
		if _, err := unix.Poll(change, -1); err != nil && !errors.Is(err, unix.EINTR) {
			return err
		}
	}
	return nil
}
