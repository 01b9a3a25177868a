package supervisor

import (
	"fmt"

	"understudy/supervisor/child"
	"understudy/supervisor/config"
)

// The numbers of open descriptors while all programs run, as counted in /proc/PID/fd; without cgroups there are fewer.
const (
	filesOfSupervisor = 64 // 18, and some for short-lived ones
	filesOfService    = 4  // the tree's cgroup
	filesOfProgram    = 6  // two for its process, and its cgroup
	filesOfLog        = 3
	filesOfNotify     = 2
	filesOfCommand    = filesOfProgram + 1 // a check, while it runs
)

// EnoughFiles refuses services for which this process would run out of descriptors, in the middle of a start or of a kill.
func EnoughFiles(services map[string]config.Service) error {
	hard, err := child.MostFiles()
	if err != nil {
		return err
	}
	if need := filesNeeded(services); need > hard {
		number := "1 service"
		if n := len(services); n != 1 {
			number = fmt.Sprintf("%d services", n)
		}
		return fmt.Errorf("%s may need %d open files, and this process may have no more than %d: set LimitNOFILE=%d in its unit (systemctl edit), "+
			"or `ulimit -Hn %d` before it is started", number, need, hard, 2*need, 2*need)
	}
	return nil
}

// filesNeeded is how many descriptors a supervisor needs when all services are active here.
func filesNeeded(services map[string]config.Service) uint64 {
	n := filesOfSupervisor
	for _, s := range services {
		if !s.Eligible {
			continue
		}
		n += filesOfService
		for _, p := range s.Processes {
			n += filesOfProgram
			if p.Log.File != "" {
				n += filesOfLog
			}
			if p.Ready.Notify {
				n += filesOfNotify
			}
		}
		if len(s.Health.Exec) > 0 {
			n += filesOfCommand
		}
	}
	return uint64(n)
}
