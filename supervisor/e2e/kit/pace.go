package kit

import (
	"testing"
	"time"
)

// Pace has a command that does nothing run on the host again and again, and returns what tells how long it took at most: what
// the machine itself makes of the start of a process.
func (h *Host) Pace(tb testing.TB) (longest func() time.Duration) {
	tb.Helper()
	binary := UnderstudyBinary(tb)
	stop, most := make(chan struct{}), make(chan time.Duration, 1)
	go func() {
		slowest := time.Duration(0)
		for {
			began := time.Now()
			_ = h.Command(binary, "version").Run() // how long it took is all that counts
			slowest = max(slowest, time.Since(began))
			select {
			case <-stop:
				most <- slowest
				return
			default:
			}
		}
	}()
	return func() time.Duration { close(stop); return <-most }
}
