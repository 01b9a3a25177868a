package child

import (
	"fmt"
	"math"
	"os"

	"golang.org/x/sys/unix"

	"understudy/supervisor/child/inside"
)

// Open files of a supervisor. Measured: 18 without services, one for each service, and 10 for the plainest program that runs; a log and
// each further process take more. Those, connections, checks, and guardians that are replaced have what is spare.
const (
	ownFiles   = 20
	spareFiles = 60
	treeFiles  = 10
)

func fileLimit() uint64 {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l); err != nil {
		return inside.Unlimited
	}
	return l.Max
}

// roomFor is for how many programs a limit suffices beside other open files.
func roomFor(limit uint64, others int) int {
	return max(0, int(min(limit, math.MaxInt32))-others-spareFiles) / treeFiles
}

// crowded fails where there is no room for the trees that are there and so many more.
func (g *Guard) crowded(making int) error {
	unlock := g.guardians.lockToRead()
	there := len(g.guardians.trees())
	unlock()
	if open, err := os.ReadDir("/proc/self/fd"); err == nil && (there == 0 && making == 1 || g.others.Load() == 0) {
		g.others.Store(int32(len(open) - there*treeFiles)) // there are some already after an exec
	}
	limit := fileLimit()
	if room := roomFor(limit, int(g.others.Load())); there+making > room {
		return fmt.Errorf("the hard limit of open files, %d, suffices for %d services: raise it (LimitNOFILE= of the unit, `ulimit -Hn`)",
			limit, room)
	}
	return nil
}

// Crowded says what is to be done where there is no room for so many services; "": there is.
func Crowded(services int) string {
	limit := fileLimit()
	room := roomFor(limit, ownFiles+services)
	if services <= room {
		return ""
	}
	return fmt.Sprintf("the hard limit of open files, %d, suffices for %d of %d services: "+
		"raise it to %d (LimitNOFILE= of the unit, `ulimit -Hn`)",
		limit, room, services, ownFiles+spareFiles+(treeFiles+1)*services)
}
