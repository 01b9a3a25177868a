package child

import (
	"fmt"
	"math"

	"golang.org/x/sys/unix"

	"understudy/supervisor/child/inside"
)

// Open files of a supervisor beside those of its trees, and of each tree with a program that runs. Measured: 18, and 10 with the plainest
// program; a log and each further process take more. The others are for connections, checks, and guardians that are replaced.
const (
	ownFiles  = 80
	treeFiles = 10
)

// Room is for how many services this process may open files, by its limit.
func Room() (services int, limit uint64) {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l); err != nil {
		return math.MaxInt, inside.Unlimited
	}
	return int(min(max(l.Max, ownFiles)-ownFiles, math.MaxInt32) / treeFiles), l.Max
}

// crowded fails where there is no room for another tree.
func (g *Guard) crowded() error {
	unlock := g.guardians.lockToRead()
	there := len(g.guardians.trees())
	unlock()
	if room, limit := Room(); there >= room {
		return fmt.Errorf("the hard limit of open files, %d, suffices for %d services: raise it (LimitNOFILE= of the unit, `ulimit -Hn`)", limit, room)
	}
	return nil
}

// Crowded says what is to be done where there is no room for so many services; "": there is.
func Crowded(services int) string {
	room, limit := Room()
	if services <= room {
		return ""
	}
	return fmt.Sprintf("the hard limit of open files, %d, suffices for %d of %d services: raise it to %d (LimitNOFILE= of the unit, `ulimit -Hn`)",
		limit, room, services, ownFiles+treeFiles*services)
}
