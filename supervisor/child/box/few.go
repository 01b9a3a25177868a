package box

// A call that waits in the kernel holds a thread. So this package limits calls that many services make at once, and that the kernel lets in
// one by one anyway, and ReserveThreads makes the threads for those beforehand.

// few limits how many goroutines do something at once.
type few chan struct{}

func (f few) Do(act func() error) error {
	f <- struct{}{}
	defer func() { <-f }()
	return act()
}

// The kernel has one lock for all of these. Kills do not wait for starts.
var (
	Making   = make(few, 4) // and removing cgroups, and other work without hurry
	killing  = make(few, 4) // by cgroup
	freezing = make(few, 2) // cgroups before their kill
	Finding  = make(few, 4) // processes that have got into other cgroups
)
