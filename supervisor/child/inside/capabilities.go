package inside

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// Capabilities are sets as in the kernel, a bit for each number.
type Capabilities struct {
	Bounding *uint64 `json:"bounding,omitempty"` // all that the program can ever have; nil: as it is
	Ambient  uint64  `json:"ambient,omitempty"`  // what it has though it is not root
}

const lastCap = 63 // of what fits into the kernel's sets

// capSets is what capget and capset take, two words for each set.
type capSets struct {
	header unix.CapUserHeader
	data   [2]unix.CapUserData
}

func (c *capSets) call(number uintptr) unix.Errno {
	c.header = unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	_, _, errno := unix.RawSyscall(number, uintptr(unsafe.Pointer(&c.header)), uintptr(unsafe.Pointer(&c.data[0])), 0)
	return errno
}

func prctl(option, arg2, arg3 uintptr) call { return kernel(unix.SYS_PRCTL, option, arg2, arg3) }

// inherited are the sets that a copy of this process has, once its inheritable set is bounded.
func (c *Capabilities) inherited() (*capSets, unix.Errno) {
	sets := new(capSets)
	errno := sets.call(unix.SYS_CAPGET)
	if c.Bounding != nil {
		for i := range sets.data {
			sets.data[i].Inheritable &= uint32(*c.Bounding >> (32 * i))
		}
	}
	return sets, errno
}

func (c *capSets) set(o *order) call {
	return kernel(unix.SYS_CAPSET, value(o, c.header), value(o, c.data))
}

// before are the steps that need rights which a change of the user takes away.
func (c *Capabilities) before(o *order, userChanges bool) (all []step) {
	if c.Bounding != nil {
		var calls []call
		for n := uintptr(0); n <= lastCap; n++ {
			has, _, errno := unix.RawSyscall(unix.SYS_PRCTL, unix.PR_CAPBSET_READ, n, 0)
			if errno != 0 || has == 0 || *c.Bounding>>n&1 == 1 {
				continue // no process has an unknown one
			}
			calls = append(calls, prctl(unix.PR_CAPBSET_DROP, n, 0))
		}
		// An exec by root adds the inheritable set. The ambient set goes with it.
		sets, errno := c.inherited()
		calls = append(calls, call{fails: errno, number: unix.SYS_GETPID}, sets.set(o))
		all = append(all, step{
			"capabilities.bounding", "only a supervisor that runs as root (with CAP_SETPCAP) can lower it: " +
				"run it as root, or leave capabilities.bounding out", calls,
		})
	}
	if c.Ambient != 0 && userChanges {
		all = append(all, step{"capabilities.ambient", "", []call{prctl(unix.PR_SET_KEEPCAPS, 1, 0)}}) // until the exec
	}
	return all
}

// after are the steps that a change of the user would revert.
func (c *Capabilities) after(o *order, userChanges bool) []step {
	if c.Ambient == 0 {
		return nil
	}
	const advice = "the supervisor itself does not have all of them: run it as root, " +
		"or give it those by AmbientCapabilities= in its unit, or leave them out"
	sets, errno := c.inherited()
	for i := range sets.data {
		own, set := uint32(c.Ambient>>(32*i)), &sets.data[i]
		if own&^set.Permitted != 0 && errno == 0 {
			errno = unix.EPERM
		}
		if userChanges { // and drop the rights kept for this
			set.Effective, set.Permitted = own, own
		}
		set.Inheritable |= own
	}
	calls := []call{{fails: errno, number: unix.SYS_GETPID}, sets.set(o), prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0)}
	for n := uintptr(0); n <= lastCap; n++ {
		if c.Ambient>>n&1 == 1 {
			calls = append(calls, prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_RAISE, n))
		}
	}
	return []step{{"capabilities.ambient", advice, calls}}
}
