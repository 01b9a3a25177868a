package child

import (
	"os"
	"runtime"

	"understudy/supervisor/child/box"
)

const (
	mostProcessors    = 4      // of a supervisor, which has little to compute: each may take a thread at any moment
	supervisorThreads = 12 + 6 // for the calls that box limits; for signals, logs, files, and other calls into the kernel
)

// KeepThreads makes threads beforehand, so that this process, a supervisor, has them when the kernel may refuse new ones: for its work
// at the limit, and above all for ending programs.
func KeepThreads() {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(min(mostProcessors, runtime.GOMAXPROCS(0)))
	}
	box.ReserveThreads(supervisorThreads)
}
