package device

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"understudy/supervisor/child/wire"
)

// Device is an open watchdog: counting since it was opened. Every write counts as a sign of life.
type Device struct {
	File      *os.File
	Timeout   time.Duration
	Permanent bool // it cannot be disarmed, or may not be
}

// Farewell is written just before the last close of the device, and stops its counting. Any other byte is a sign of life.
const Farewell = "V"

// Open opens the device and sets its timeout, of whole seconds. It counts from then on.
func Open(path string, timeout time.Duration) (*Device, error) {
	if timeout < time.Second {
		return nil, errors.New("a watchdog counts in whole seconds, and less than one is left")
	}
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return nil, &os.PathError{Op: "stat", Path: path, Err: err}
	}
	if st.Mode&unix.S_IFMT != unix.S_IFCHR {
		return nil, fmt.Errorf("%s is not a device", path)
	}
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if errors.Is(err, unix.EBUSY) {
		return nil, fmt.Errorf("%w: another program holds it (systemd's RuntimeWatchdogSec, a watchdog daemon?)", err)
	}
	if err != nil {
		return nil, err
	}
	d := &Device{File: file}
	err = wire.Using(file, func(fd int) (err error) {
		d.Timeout, d.Permanent, err = prepare(descriptor(fd), timeout)
		return err
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), d.Close())
	}
	return d, nil
}

// calls are the calls of a watchdog's driver.
type calls interface {
	options() (uint32, error)
	setTimeout(seconds int) error
	timeout() (seconds int, err error)
	stop() error
	start() error
}

// prepare returns the timeout that the device took, which may be shorter, and whether it can never be stopped again.
func prepare(d calls, wanted time.Duration) (got time.Duration, permanent bool, err error) {
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
	refused := d.stop()
	if refused != nil {
		return got, true, nil
	}
	if err := d.start(); err != nil {
		return 0, false, fmt.Errorf("start it: %w", err)
	}
	return got, false, nil
}

// descriptor is an open device.
type descriptor int

func (fd descriptor) options() (uint32, error) {
	info, err := unix.IoctlGetWatchdogInfo(int(fd))
	if err != nil {
		return 0, err
	}
	return info.Options, nil
}

func (fd descriptor) setTimeout(seconds int) error {
	return unix.IoctlSetPointerInt(int(fd), unix.WDIOC_SETTIMEOUT, seconds)
}

func (fd descriptor) timeout() (int, error) { return unix.IoctlGetInt(int(fd), unix.WDIOC_GETTIMEOUT) }

func (fd descriptor) stop() error {
	return unix.IoctlSetPointerInt(int(fd), unix.WDIOC_SETOPTIONS, unix.WDIOS_DISABLECARD)
}

func (fd descriptor) start() error {
	return unix.IoctlSetPointerInt(int(fd), unix.WDIOC_SETOPTIONS, unix.WDIOS_ENABLECARD)
}

// Close closes the device, and stops it if no other process holds it.
func (d *Device) Close() error {
	_, err := d.File.WriteString(Farewell)
	return errors.Join(err, d.File.Close())
}
