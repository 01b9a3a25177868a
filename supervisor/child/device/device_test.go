package device

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestWhatIsNoWatchdogIsNotArmed(t *testing.T) {
	for _, w := range []struct {
		Path    string
		Timeout time.Duration
	}{
		{Path: "/dev/null", Timeout: time.Second},
		{Path: "/dev/no-such-watchdog", Timeout: time.Second},
		{Path: "/etc/passwd", Timeout: time.Second},
		{Path: "/dev/null", Timeout: time.Second / 2},
	} {
		if d, err := Open(w.Path, w.Timeout); err == nil {
			t.Errorf("%+v: %v", w, d.Close())
		} else {
			t.Log(err)
		}
	}
}

// driver answers as a watchdog's driver would.
type driver struct {
	opts               uint32
	err, stays, broken error
	least, most        int // of its timeout
	set                int
	runs               bool
}

func (d *driver) options() (uint32, error) { return d.opts, d.err }
func (d *driver) setTimeout(s int) error   { d.set = max(min(s, d.most), d.least); return nil }
func (d *driver) timeout() (int, error)    { return d.set, nil }
func (d *driver) stop() error              { d.runs = d.runs && d.stays != nil; return d.stays }
func (d *driver) start() error             { d.runs = d.broken == nil; return d.broken }

func TestWatchdogIsTakenOnlyWithATimeoutThatIsShortEnough(t *testing.T) {
	const fine = unix.WDIOF_SETTIMEOUT | unix.WDIOF_KEEPALIVEPING | unix.WDIOF_MAGICCLOSE
	for name, c := range map[string]struct {
		driver    driver
		want      time.Duration // 0: refused
		permanent bool
	}{
		"fine":               {driver{opts: fine, most: 60}, 3 * time.Second, false},
		"shorter":            {driver{opts: fine, most: 2}, 2 * time.Second, false},
		"too long":           {driver{opts: fine, least: 4, most: 60}, 0, false},
		"nothing":            {driver{opts: fine}, 0, false},
		"nowayout":           {driver{opts: fine, most: 60, stays: unix.EBUSY}, 3 * time.Second, true},
		"does not say":       {driver{opts: fine, most: 60, stays: unix.ENOTTY}, 3 * time.Second, true},
		"does not start":     {driver{opts: fine, most: 60, broken: unix.EIO}, 0, false},
		"timeout as it is":   {driver{opts: unix.WDIOF_KEEPALIVEPING, most: 60}, 0, false},
		"alarm only":         {driver{opts: fine | unix.WDIOF_ALARMONLY, most: 60}, 0, false},
		"no watchdog device": {driver{err: unix.ENOTTY, most: 60}, 0, false},
	} {
		c.driver.runs = true
		got, permanent, err := prepare(&c.driver, 3*time.Second)
		if got != c.want || permanent != c.permanent || (err == nil) != (c.want > 0) {
			t.Errorf("%s: %v, permanent: %v, %v", name, got, permanent, err)
		}
		if err == nil && !c.driver.runs {
			t.Errorf("%s: it does not run", name)
		}
	}
}
