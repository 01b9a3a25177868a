package child

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Watchdog is a device that resets the machine when nobody has written to it for a while, and how it is used.
type Watchdog struct {
	Path    string
	Timeout time.Duration // whole seconds
	After   time.Duration // the end of a lease: by then the machine is reset, if a tree of it is not proved dead
}

// dogDevice is an open watchdog: counting since it was opened. Every write counts as a sign of life.
type dogDevice struct {
	file      *os.File
	timeout   time.Duration
	permanent bool // it cannot be disarmed, or may not be
}

// farewell, written last before the last close of the device, stops its counting. All else is a sign of life.
var farewell = []byte("V")

// openDog opens the device and sets its timeout. It counts from then on.
func openDog(w Watchdog) (*dogDevice, error) {
	if w.Timeout < time.Second {
		return nil, errors.New("a watchdog counts in whole seconds, and there is less than one")
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
	d := &dogDevice{file: file}
	err = using(file, func(fd int) (err error) {
		d.timeout, d.permanent, err = prepareDog(dogFD(fd), w.Timeout)
		return err
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", w.Path, err), d.part())
	}
	return d, nil
}

// dogCalls is what a watchdog's driver can be asked.
type dogCalls interface {
	options() (uint32, error)
	setTimeout(seconds int) error
	timeout() (seconds int, err error)
	stop() error
	start() error
}

// prepareDog returns the timeout that the device took, which may be shorter, and whether it can never be stopped again.
func prepareDog(d dogCalls, wanted time.Duration) (got time.Duration, permanent bool, err error) {
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
		return 0, false, fmt.Errorf("it takes a timeout of %v for one of %v", got, wanted)
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

// dogFD is an open device.
type dogFD int

func (fd dogFD) options() (uint32, error) {
	info, err := unix.IoctlGetWatchdogInfo(int(fd))
	if err != nil {
		return 0, err
	}
	return info.Options, nil
}

func (fd dogFD) setTimeout(seconds int) error {
	return unix.IoctlSetPointerInt(int(fd), unix.WDIOC_SETTIMEOUT, seconds)
}

func (fd dogFD) timeout() (int, error) { return unix.IoctlGetInt(int(fd), unix.WDIOC_GETTIMEOUT) }

func (fd dogFD) stop() error {
	return unix.IoctlSetPointerInt(int(fd), unix.WDIOC_SETOPTIONS, unix.WDIOS_DISABLECARD)
}

func (fd dogFD) start() error {
	return unix.IoctlSetPointerInt(int(fd), unix.WDIOC_SETOPTIONS, unix.WDIOS_ENABLECARD)
}

// part lets go of the device, and stops it if nobody else holds it.
func (d *dogDevice) part() error {
	_, err := d.file.Write(farewell)
	return errors.Join(err, d.file.Close())
}
