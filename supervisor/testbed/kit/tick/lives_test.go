package tick

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"understudy/supervisor/testbed/must"
)

// A look leaves nothing behind that the next one could take for a life, even when processes start between the two.
func TestALookIsNoLife(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	must.OK(t, os.WriteFile(path, nil, 0o644))
	enough := make(chan struct{})
	var starters sync.WaitGroup
	for range 2 {
		starters.Go(func() {
			for {
				select {
				case <-enough:
					return
				default:
					_ = exec.Command("true").Run() // whatever becomes of it
				}
			}
		})
	}
	for until := time.Now().Add(time.Second); time.Now().Before(until) && !t.Failed(); {
		if Lives(path) {
			t.Error("nobody holds the account")
		}
	}
	close(enough)
	starters.Wait()
	must.OK(t, Hold(path))
	if !Lives(path) {
		t.Error("this process holds the account")
	}
}
