package guardian

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// alarm is a timer that becomes readable at an absolute point of the boot clock.
type alarm struct {
	fd int
	at time.Duration
}

func newAlarm() (*alarm, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_BOOTTIME, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("timer on the boot clock: %w", err)
	}
	return &alarm{fd: fd}, nil
}

// set arms the alarm; zero disarms it.
func (a *alarm) set(at time.Duration) error {
	if at == a.at {
		return nil
	}
	spec := unix.ItimerSpec{}
	if at > 0 {
		spec.Value = unix.NsecToTimespec(int64(at))
	}
	if err := unix.TimerfdSettime(a.fd, unix.TFD_TIMER_ABSTIME, &spec, nil); err != nil {
		return fmt.Errorf("arm the timer: %w", err)
	}
	a.at = at
	return nil
}

// rung reads the expiry, so that the descriptor is quiet until the next one.
func (a *alarm) rung() {
	var ticks [8]byte
	_, _ = unix.Read(a.fd, ticks[:])
	a.at = 0
}
