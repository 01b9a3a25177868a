package child

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"understudy/supervisor/child/wire"
)

// Watchdog names a device that resets the machine when nobody has written to it for a while, and its settings.
type Watchdog struct {
	Path    string
	Timeout time.Duration // whole seconds
	After   time.Duration // the end of a lease: by then the machine is reset, if a tree of it is not proved dead
}

// watchdogDevice is an open watchdog: counting since it was opened. Every write counts as a sign of life.
type watchdogDevice struct {
	file      *os.File
	timeout   time.Duration
	permanent bool // it cannot be disarmed, or may not be
}

// farewell, written just before the last close of the device, stops its counting. Any other byte is a sign of life.
var farewell = []byte("V")

// openWatchdog opens the device and sets its timeout. It counts from then on.
func openWatchdog(w Watchdog) (*watchdogDevice, error) {
	if w.Timeout < time.Second {
		return nil, errors.New("a watchdog counts in whole seconds, and less than one is left")
	}
	var st unix.Stat_t
	if err := unix.Stat(w.Path, &st); err != nil {
		return nil, &os.PathError{Op: "stat", Path: w.Path, Err: err}
	}
	if st.Mode&unix.S_IFMT != unix.S_IFCHR {
		return nil, fmt.Errorf("%s is not a device", w.Path)
	}
	file, err := os.OpenFile(w.Path, os.O_WRONLY, 0)
	if errors.Is(err, unix.EBUSY) {
		return nil, fmt.Errorf("%w: another program holds it (systemd's RuntimeWatchdogSec, a watchdog daemon?)", err)
	}
	if err != nil {
		return nil, err
	}
	d := &watchdogDevice{file: file}
	err = wire.Using(file, func(fd int) (err error) {
		d.timeout, d.permanent, err = prepareWatchdog(watchdogFD(fd), w.Timeout)
		return err
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", w.Path, err), d.part())
	}
	return d, nil
}

// watchdogCalls are the calls of a watchdog's driver.
type watchdogCalls interface {
	options() (uint32, error)
	setTimeout(seconds int) error
	timeout() (seconds int, err error)
	stop() error
	start() error
}

// prepareWatchdog returns the timeout that the device took, which may be shorter, and whether it can never be stopped again.
func prepareWatchdog(d watchdogCalls, wanted time.Duration) (got time.Duration, permanent bool, err error) {
	options, err := d.options()
	if err != nil {
		return 0, false, fmt.Errorf("no watchdog device: %w", err)
	}
	const needed = unix.WDIOF_SETTIMEOUT | unix.WDIOF_KEEPALIVEPING
	if options&needed != needed {
		return 0, false, errors.New("its timeout cannot be set")
	}
	if options&unix.WDIOF_ALARMONLY != 0 {
		return 0, false, errors.New("it does not reset the machine")
	}
	if err := d.setTimeout(int(wanted / time.Second)); err != nil {
		return 0, false, fmt.Errorf("set its timeout to %v: %w", wanted, err)
	}
	seconds, err := d.timeout()
	if err != nil {
		return 0, false, fmt.Errorf("read its timeout: %w", err)
	}
	got = time.Duration(seconds) * time.Second
	if got < time.Second || got > wanted {
		return 0, false, fmt.Errorf("it set a timeout of %v instead of %v", got, wanted)
	}
	// A driver that was told never to stop (nowayout) refuses; one that does not know the order may be told so as well.
	if d.stop() != nil {
		return got, true, nil
	}
	if err := d.start(); err != nil {
		return 0, false, fmt.Errorf("start it: %w", err)
	}
	return got, false, nil
}

// watchdogFD is an open device.
type watchdogFD int

func (fd watchdogFD) options() (uint32, error) {
	info, err := unix.IoctlGetWatchdogInfo(int(fd))
	if err != nil {
		return 0, err
	}
	return info.Options, nil
}

func (fd watchdogFD) setTimeout(seconds int) error {
	return unix.IoctlSetPointerInt(int(fd), unix.WDIOC_SETTIMEOUT, seconds)
}

func (fd watchdogFD) timeout() (int, error) { return unix.IoctlGetInt(int(fd), unix.WDIOC_GETTIMEOUT) }

func (fd watchdogFD) stop() error {
	return unix.IoctlSetPointerInt(int(fd), unix.WDIOC_SETOPTIONS, unix.WDIOS_DISABLECARD)
}

func (fd watchdogFD) start() error {
	return unix.IoctlSetPointerInt(int(fd), unix.WDIOC_SETOPTIONS, unix.WDIOS_ENABLECARD)
}

// part closes the device, and stops it if no other process holds it.
func (d *watchdogDevice) part() error {
	_, err := d.file.Write(farewell)
	return errors.Join(err, d.file.Close())
}
