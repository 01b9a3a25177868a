package child

import (
	"os"
	"runtime"
	"sync"
)

// A call that waits in the kernel holds a thread. The runtime makes another one when the others have work left, gives none back,
// and ends the process when the kernel refuses one, as it does at a limit of tasks (a unit's TasksMax=, a container's, a user's).
// So this package limits calls that many services make at once, and that the kernel lets in one by one anyway, and makes
// the threads for them beforehand.

// few limits how many goroutines do something at once.
type few chan struct{}

func (f few) do(act func() error) error {
	f <- struct{}{}
	defer func() { <-f }()
	return act()
}

// The kernel has one lock for all of these. Kills do not wait for starts.
var (
	making   = make(few, 4) // and removing cgroups, and other work without hurry
	killing  = make(few, 4) // by cgroup
	freezing = make(few, 2) // cgroups before their kill
	looking  = make(few, 2) // whether killed processes are dead, in the first moments
)

const (
	mostProcessors    = 4      // of a supervisor, which has little to compute: each may take a thread at any moment
	supervisorThreads = 12 + 6 // for the limited calls; for signals, logs, files, and other calls into the kernel
	guardianThreads   = 5      // the loop, an answer in the supervisor's place, a closer and its files, the collector
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
