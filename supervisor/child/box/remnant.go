package box

import (
	"errors"
	"fmt"
	"os"
)

// ErrMayLive says that a process has the pid of a process that was seen alive, but nobody wrote down which process that was.
var ErrMayLive = errors.New("a process has the pid of one that was seen alive")

// Outlasted looks for a process of the tree that was seen alive, whatever has become of its cgroups: a process that leaves them can
// remove them. nil: that one is dead. start 0: an older version saw it. P2.
func (id TreeID) Outlasted(pid int, start uint64) error {
	if pid <= 0 {
		return nil
	}
	if err := id.here(); err != nil {
		return err
	}
	alive := Leftover{Tree: id.Name, Named: true}
	if start != 0 {
		one, err := holdNamed(pid, start)
		if err != nil || one == nil {
			return err
		}
		defer one.Close()
		alive.Look(pid)
		return &AliveError{alive, ErrUnproved}
	}
	s, err := StatOf(pid)
	switch {
	case errors.Is(err, os.ErrNotExist):
		one, err := holdNamed(pid, 0) // this fails if the process is only hidden from us
		if one != nil {
			one.Close()
		}
		return err
	case err != nil:
		return err
	case !s.Alive(), s.Start < id.StartTime: // older than the supervisor that made the tree
		return nil
	}
	alive.Look(pid)
	return fmt.Errorf("%w: %v", ErrMayLive, alive)
}
