package box

import (
	"runtime"
	"sync"
)

// ReserveThreads makes so many threads, which are idle until the runtime needs one. It makes one when the others have work left, gives none
// back, and ends the process when the kernel refuses one, as it does at a limit of tasks (a unit's TasksMax=, a container's, a user's).
func ReserveThreads(n int) {
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
