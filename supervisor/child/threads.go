package child

import (
	"os"
	"runtime"
	"sync"
)

// A call that waits in the kernel holds a thread. The runtime makes another one when the others have work left, gives none back,
// and ends the process when the kernel refuses one, as it does at a limit of tasks (a unit's TasksMax=, a container's, a user's).
// So package box limits calls that the kernel lets in one by one anyway, and this one makes the threads for them beforehand.

const (
	mostProcessors    = 4      // of a supervisor, which has little to compute: each may take a thread at any moment
	supervisorThreads = 12 + 6 // for the limited calls; for signals, logs, files, and other calls into the kernel
	guardianThreads   = 6      // the loop, an answer in the supervisor's place, a closer and its files, an undo, the collector
	stubThreads       = 6      // for reaping, listening, signals, and killing
)

// KeepThreads makes threads beforehand, so that this process, a supervisor, has them when the kernel may refuse new ones: for its work
// at the limit, and above all for ending programs.
func KeepThreads() {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(min(mostProcessors, runtime.GOMAXPROCS(0)))
	}
	reserveThreads(supervisorThreads)
}

// reserveThreads makes so many threads, which are idle until the runtime needs one.
func reserveThreads(n int) {
	var there, over sync.WaitGroup
	there.Add(n)
	release := make(chan struct{})
	for range n {
		over.Go(func() {
			runtime.LockOSThread() // so that the next one takes another
			defer runtime.UnlockOSThread()
			there.Done()
			<-release
		})
	}
	there.Wait()
	close(release)
	over.Wait()
}
