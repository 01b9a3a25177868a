package kit

import (
	"runtime"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"understudy/supervisor/testbed/kit/tick"
)

// Stood watches the machine until the test ends. What it returns tells for how long at a stretch the machine has stood still, at
// most, since that was last asked: somebody who wants to run for an instant every few milliseconds could not. On a machine that
// does not stand still it is 0.
func Stood(tb testing.TB) (longest func() time.Duration) {
	tb.Helper()
	const nap, usual = 5 * time.Millisecond, 50 * time.Millisecond
	var mu sync.Mutex // guards the fields below
	woke, most := tick.Now(), time.Duration(0)
	look := func(anew bool) (so time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		now := tick.Now()
		most, woke = max(most, time.Duration(now-woke)), now
		if so = most; anew {
			most = 0
		}
		return so
	}
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		pause := unix.NsecToTimespec(int64(nap))
		for {
			select {
			case <-stop:
				return
			default:
				_ = unix.Nanosleep(&pause, nil) // a signal may cut it short
				look(false)
			}
		}
	}()
	tb.Cleanup(func() { close(stop); <-done })
	return func() time.Duration {
		if so := look(true); so > usual {
			return so
		}
		return 0
	}
}
