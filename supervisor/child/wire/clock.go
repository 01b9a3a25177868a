package wire

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// Now is the time since boot, time spent suspended included. Every deadline is a point on this clock:
// it never steps, and all processes of a host read the same value.
func Now() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		panic(fmt.Sprintf("wire: the kernel has no boot clock: %v", err)) // Linux has it since 2.6.39
	}
	return time.Duration(ts.Nano())
}
