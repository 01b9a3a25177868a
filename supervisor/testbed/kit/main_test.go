package kit

import (
	"os"
	"runtime"
	"testing"

	"understudy/supervisor/testbed/apart"
)

// The first thread stands for the whole process where others look at its namespaces: it is kept for TestMain, so that no
// goroutine that enters a host's network runs on it.
func init() { runtime.LockOSThread() }

func TestMain(m *testing.M) {
	code := apart.Run(m)
	RemoveBinaries()
	os.Exit(code)
}
