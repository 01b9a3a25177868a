package child

import (
	"os"
	"runtime"
	"sync"
)

// A call that waits in the kernel holds a thread. The runtime makes another one when the others have work left, gives none back,
// and ends the process when the kernel refuses one, as it does at a limit of tasks (a unit's TasksMax=, a container's, a user's).
// So calls that many services make at once, and that the kernel lets in one by one anyway, are few at a time here, and the threads
// for those are there before they are needed.

// few lets only so many do something at once.
type few chan struct{}

func (f few) do(act func() error) error {
	f <- struct{}{}
	defer func() { <-f }()
	return act()
}

// The kernel has one lock for all of these. What kills does not wait for what makes.
var (
	making   = make(few, 4) // and removing cgroups, and what else is in no hurry
	killing  = make(few, 4) // by cgroup
	freezing = make(few, 2) // what is to be killed
	looking  = make(few, 2) // whether what was killed is dead, in the first moments
)

const (
	mostProcessors    = 4      // of a supervisor, which has little to compute: each may take a thread at any moment
	supervisorThreads = 12 + 6 // for what is few at a time; for signals, logs, files, and what else may be in the kernel
	guardianThreads   = 5      // the loop, an answer in the supervisor's place, a closer and its files, the collector
	stubThreads       = 6      // what reaps, listens, hears signals, and kills
)

// KeepThreads has this process, a supervisor, never ask for a thread when there may be none to be had: for what is done at the
// limit, and above all for the end of what runs.
func KeepThreads() {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(min(mostProcessors, runtime.GOMAXPROCS(0)))
	}
	reserveThreads(supervisorThreads)
}

// reserveThreads makes so many threads that do nothing until the runtime needs one.
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
