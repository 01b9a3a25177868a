package box

import "errors"

// ErrMayLive says that a process was seen alive, but not written down which one.
var ErrMayLive = errors.New("a process was seen alive, and is not known by its start")

// Outlasted looks for a process of the tree that was seen alive, whatever has become of its cgroups: a process that leaves them can
// remove them. nil: that one is dead. P2.
func (id TreeID) Outlasted(pid int, start uint64) error {
	if pid <= 0 {
		return nil
	}
	if err := id.here(); err != nil {
		return err
	}
	if start == 0 {
		return ErrMayLive
	}
	one, err := holdNamed(pid, start)
	if err != nil || one == nil {
		return err
	}
	defer one.Close()
	alive := Leftover{Tree: id.Name, Named: true}
	alive.Look(pid)
	return &AliveError{alive, ErrUnproved}
}
