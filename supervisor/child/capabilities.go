package child

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

func prctl(option, arg2, arg3 uintptr) (int, unix.Errno) {
	n, _, errno := unix.RawSyscall6(unix.SYS_PRCTL, option, arg2, arg3, 0, 0, 0)
	return int(n), errno
}

// before are the steps that need rights which a change of the user takes away.
func (c *Capabilities) before(userChanges bool) (all []step) {
	sets := new(capSets)
	if c.Bounding != nil {
		keep := *c.Bounding
		all = append(all, step{
			"capabilities.bounding", "only a supervisor that runs as root (with CAP_SETPCAP) can lower it: run it as root, or leave capabilities.bounding out",
			func() unix.Errno {
				for n := uintptr(0); n <= lastCap; n++ {
					if has, errno := prctl(unix.PR_CAPBSET_READ, n, 0); errno != 0 || has == 0 || keep>>n&1 == 1 {
						continue // no process has an unknown one
					}
					if _, errno := prctl(unix.PR_CAPBSET_DROP, n, 0); errno != 0 {
						return errno
					}
				}
				// An exec by root adds the inheritable set. The ambient set goes with it.
				if errno := sets.call(unix.SYS_CAPGET); errno != 0 {
					return errno
				}
				for i := range sets.data {
					sets.data[i].Inheritable &= uint32(keep >> (32 * i))
				}
				return sets.call(unix.SYS_CAPSET)
			},
		})
	}
	if c.Ambient != 0 && userChanges {
		all = append(all, step{"capabilities.ambient", "", func() unix.Errno {
			_, errno := prctl(unix.PR_SET_KEEPCAPS, 1, 0) // until the exec
			return errno
		}})
	}
	return all
}

// after are the steps that a change of the user would revert.
func (c *Capabilities) after(userChanges bool) []step {
	if c.Ambient == 0 {
		return nil
	}
	sets := new(capSets)
	const advice = "the supervisor itself does not have all of them: run it as root, or give it those by AmbientCapabilities= in its unit, or leave them out"
	return []step{{"capabilities.ambient", advice, func() unix.Errno {
		if errno := sets.call(unix.SYS_CAPGET); errno != 0 {
			return errno
		}
		for i := range sets.data {
			own, set := uint32(c.Ambient>>(32*i)), &sets.data[i]
			if missing := own &^ set.Permitted; missing != 0 {
				return unix.EPERM
			}
			if userChanges { // and drop the rights kept for this
				*set = unix.CapUserData{Effective: own, Permitted: own}
			}
			set.Inheritable |= own
		}
		if errno := sets.call(unix.SYS_CAPSET); errno != 0 {
			return errno
		}
		if _, errno := prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0); errno != 0 {
			return errno
		}
		for n := uintptr(0); n <= lastCap; n++ {
			if c.Ambient>>n&1 == 0 {
				continue
			}
			if _, errno := prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_RAISE, n); errno != 0 {
				return errno
			}
		}
		return 0
	}}}
}

// noNewPrivs comes after all steps that need rights.
func noNewPrivs() step {
	return step{"no_new_privileges: true", "", func() unix.Errno {
		_, errno := prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0)
		return errno
	}}
}
