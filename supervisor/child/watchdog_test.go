package child

import (
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"understudy/supervisor/child/box"
	"understudy/supervisor/child/device"
	"understudy/supervisor/child/wire"
	"understudy/supervisor/testbed/must"
)

const (
	fakeTimeout = time.Second
	fakeAfter   = 500 * time.Millisecond

	permanently = "permanent-" // before the name of a device that cannot be disarmed
)

// openFakeWatchdog opens what a fakeWatchdog listens at. As with the real device, only the last copy's end is a close.
func openFakeWatchdog(path string, timeout time.Duration) (*device.Device, error) {
	path, permanent := strings.CutSuffix(path, permanently+"watchdog")
	if permanent {
		path += "watchdog"
	}
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	file, err := conn.File()
	if err != nil {
		return nil, err
	}
	return &device.Device{File: file, Timeout: timeout, Permanent: permanent}, nil
}

// fakeWatchdog behaves as a watchdog's driver does: any write puts the reset off by the timeout, and a close after a V calls it off.
type fakeWatchdog struct {
	t  *testing.T
	mu sync.Mutex // guards what follows

	opened, closed int
	counts         bool
	resetAt        time.Duration // if nothing is written until then
	late           time.Duration // by how much a write came too late to keep a reset away
	beat           time.Duration // when this process was last seen to run
	stood          time.Duration // for how long it did not since the last write: nobody did, and nobody could have written
	fed            map[byte]int  // by whom
	last           byte          // that was written
	changed        chan struct{} // closed at each change
}

func newFakeWatchdog(t *testing.T, dir string) *fakeWatchdog {
	t.Helper()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, "watchdog"), Net: "unix"})
	must.OK(t, err)
	t.Cleanup(func() { _ = l.Close() })
	d := &fakeWatchdog{t: t, fed: map[byte]int{}, changed: make(chan struct{})}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			d.live(conn)
		}
	}()
	return d
}

func (d *fakeWatchdog) change(f func(now time.Duration)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f(wire.Now())
	close(d.changed)
	d.changed = make(chan struct{})
}

const (
	fakeBeat  = 10 * time.Millisecond
	fakeStood = 200 * time.Millisecond // a beat that comes later than that shows that the machine stood still
)

// alive notes that this process runs. The caller holds mu.
func (d *fakeWatchdog) alive(now time.Duration) {
	if slept := now - d.beat; slept > fakeStood {
		d.stood += slept
	}
	d.beat = now
}

func (d *fakeWatchdog) live(conn net.Conn) {
	defer conn.Close()
	gone := make(chan struct{})
	defer close(gone)
	d.change(func(now time.Duration) {
		d.opened, d.counts, d.resetAt, d.last, d.beat, d.stood = d.opened+1, true, now+fakeTimeout, 'o', now, 0
	})
	go func() {
		for tick := time.NewTicker(fakeBeat); ; {
			select {
			case <-gone:
				tick.Stop()
				return
			case <-tick.C:
				d.mu.Lock()
				d.alive(wire.Now())
				d.mu.Unlock()
			}
		}
	}()
	buf := make([]byte, 64)
	for {
		n, err := conn.Read(buf)
		d.change(func(now time.Duration) {
			if err != nil {
				d.closed++
				d.counts = d.last != 'V'
				return
			}
			d.alive(now)
			d.late = max(d.late, now-d.resetAt-d.stood)
			d.resetAt, d.last, d.stood = now+fakeTimeout, buf[n-1], 0
			for _, b := range buf[:n] {
				d.fed[b]++
			}
		})
		if err != nil {
			return
		}
	}
}

// await waits until the device is as is asked for.
func (d *fakeWatchdog) await(what string, is func() bool) {
	d.t.Helper()
	limit := time.After(patience)
	for {
		d.mu.Lock()
		done, changed := is(), d.changed
		d.mu.Unlock()
		if done {
			return
		}
		select {
		case <-changed:
		case <-limit:
			d.t.Fatalf("the watchdog is never %s: %d times opened, %d closed, fed %v", what, d.opened, d.closed, d.fed)
		}
	}
}

// fedAnew waits for so many feeds of each of the two from now on.
func (d *fakeWatchdog) fedAnew(times int) {
	d.t.Helper()
	d.mu.Lock()
	one, two := d.fed['1']+times, d.fed['2']+times
	d.mu.Unlock()
	d.await("fed by both", func() bool { return d.fed['1'] >= one && d.fed['2'] >= two })
}

// disarmed waits until the device was closed so that it does not count on; nothing may have come too late before.
func (d *fakeWatchdog) disarmed(opened int) {
	d.t.Helper()
	d.await("closed", func() bool { return d.opened == opened && d.closed == opened })
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.counts {
		d.t.Errorf("closed after %q: it counts on", d.last)
	}
	if d.late > 0 {
		d.t.Errorf("fed %v too late", d.late)
	}
}

// armed gets a tree running that the watchdog is for, and returns the lease's end.
func (p *puppet) armed(lease time.Duration) (d *fakeWatchdog, deadline time.Duration) {
	p.t.Helper()
	d = newFakeWatchdog(p.t, p.dir)
	p.early(func() { p.do(command{Do: "start", Name: "a", Script: stubborn}) })
	p.ready()
	p.guardians()
	deadline = p.under(lease)
	p.do(command{Do: "arm", Name: "a"})
	return d, deadline
}

func TestWatchdogIsFedByBothAndDisarmedWhenNothingIsLeft(t *testing.T) {
	kinds(t, func(t *testing.T, kind string) {
		p := newPuppet(t, kind)
		d, _ := p.armed(time.Minute)
		d.fedAnew(3)
		p.do(command{Do: "tree", Epoch: 1, Name: "b"})
		p.do(command{Do: "arm", Name: "b"})
		p.do(command{Do: "end", Name: "a"})
		d.fedAnew(2) // for the other one
		p.do(command{Do: "end", Name: "b"})
		d.disarmed(1)
		p.do(command{Do: "tree", Epoch: 1, Name: "c"})
		p.do(command{Do: "arm", Name: "c"})
		d.fedAnew(2)
		p.do(command{Do: "end", Name: "c"})
		d.disarmed(2)
	})
}

func TestWatchdogIsDisarmedAtACleanStop(t *testing.T) {
	p := newPuppet(t, box.KindWalk)
	d, _ := p.armed(time.Minute)
	d.fedAnew(1)
	must.OK(t, p.in.(io.Closer).Close())
	d.disarmed(1)
	must.Report(t, p.cmd.Wait())
}

// Where nothing is to run, a look at the device leaves it as it was, if it can be left.
func TestWatchdogThatCannotBeDisarmedIsFedOn(t *testing.T) {
	t.Parallel()
	p := newPuppet(t, box.KindWalk)
	d := newFakeWatchdog(t, p.dir)
	p.do(command{Do: "check"})
	d.disarmed(1)
	p.do(command{Do: "begin", Epoch: 1})
	p.do(command{Do: "tree", Epoch: 1, Name: "a"})
	p.order(command{Do: "arm", Name: "a"})
	if r := p.hear(); !strings.Contains(r.Err, ErrNoLease.Error()) {
		t.Errorf("armed without a lease: %q", r.Err)
	}
	d.disarmed(2)
	p.do(command{Do: "extend", Epoch: 1, In: time.Minute})
	p.do(command{Do: "check", Script: permanently})
	d.fedAnew(1)
	p.do(command{Do: "arm", Name: "a"})
	p.do(command{Do: "check"})
	p.do(command{Do: "end", Name: "a"})
	d.fedAnew(5)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.opened != 3 || d.closed != 2 || d.late > 0 {
		t.Errorf("opened %d times, closed %d, fed %v too late", d.opened, d.closed, d.late)
	}
}

// The machine is well as long as one of the three is left to kill what is to be killed.
func TestWatchdogIsFedWhoeverIsKilledUntilTheTreesAreDead(t *testing.T) {
	kinds(t, func(t *testing.T, kind string) {
		for name, order := range map[string][]int{
			"supervisor": {0}, "supervisor, first guardian": {0, 1}, "second guardian, supervisor": {2, 0}, "a guardian alone": {1},
			"both guardians": {1, 2},
		} {
			t.Run(name, func(t *testing.T) {
				p := newPuppet(t, kind)
				d, _ := p.armed(time.Minute)
				d.fedAnew(1)
				three := append([]int{p.cmd.Process.Pid}, p.guardians()...)
				if name == "both guardians" { // else it might replace the one before the other one dies
					freeze(t, three[0])
				}
				for _, i := range order {
					kill9(three[i])
				}
				switch name {
				case "a guardian alone":
					d.fedAnew(4) // a new one as well
					p.lives()
					p.do(command{Do: "end", Name: "a"})
				case "both guardians":
					awaitDeath(t, three[1:]...)
					_ = unix.Kill(three[0], unix.SIGCONT)
					d.fedAnew(4) // a new pair
					p.dead()
					p.do(command{Do: "end", Name: "a"})
				}
				p.dead()
				d.disarmed(1)
			})
		}
	})
}

// P3: with nobody left to kill the tree, the machine goes.
func TestWatchdogResetsAMachineThatNobodyIsLeftOn(t *testing.T) {
	t.Parallel()
	for _, sig := range []unix.Signal{unix.SIGKILL, unix.SIGSTOP} {
		t.Run(unix.SignalName(sig), func(t *testing.T) {
			p := newPuppet(t, box.KindWalk)
			d, deadline := p.armed(3 * time.Second)
			d.fedAnew(1)
			three := append([]int{p.cmd.Process.Pid}, p.guardians()...)
			for _, pid := range three {
				freeze(t, pid)
			}
			if sig == unix.SIGKILL {
				kill9(three...)
				d.await("closed", func() bool { return d.closed == 1 })
			}
			d.mu.Lock()
			defer d.mu.Unlock()
			if !d.counts || d.resetAt > deadline+fakeAfter {
				t.Errorf("it counts: %v, the reset comes %v after the lease's end", d.counts, d.resetAt-deadline)
			}
		})
	}
}

// A frozen supervisor costs its child, and not the machine.
func TestWatchdogIsFedOnForAFrozenSupervisorOnceTheTreeIsDead(t *testing.T) {
	kinds(t, func(t *testing.T, kind string) {
		p := newPuppet(t, kind)
		d, deadline := p.armed(2 * time.Second)
		freeze(t, p.cmd.Process.Pid)
		p.dead()
		d.await("past the lease's end", func() bool { return d.resetAt > deadline+fakeAfter+2*fakeTimeout })
		must.OK(t, unix.Kill(p.cmd.Process.Pid, unix.SIGCONT))
		p.do(command{Do: "end", Name: "a"})
		d.disarmed(1)
	})
}
