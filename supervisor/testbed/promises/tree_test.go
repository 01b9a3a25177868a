package promises

import (
	"syscall"
	"testing"
	"time"

	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/kit/tick"
)

// families are children that are hard to kill.
var families = map[string][]string{
	"has grandchildren":              {"term=ignore", "children=5", "every=2ms"},
	"has daemons":                    {"term=ignore", "daemons=5", "every=2ms"},
	"leaves daemons behind":          {"term=exit", "daemons=5", "every=2ms"},
	"has 200 processes":              {"term=ignore", "children=100", "every=20ms"},
	"forks all the time":             {"term=ignore", "chains=20", "every=2ms"},
	"forks daemons when it is asked": {"term=fork", "daemons=2", "every=2ms"},
}

var ends = map[string]func(t *testing.T, a *kit.Supervisor){
	"stopped":   func(t *testing.T, a *kit.Supervisor) { a.Signal(syscall.SIGTERM) },
	"killed -9": func(t *testing.T, a *kit.Supervisor) { a.Kill9() },
}

// P2: when the lock is free, nothing of the child is alive, neither by its own account nor in the process table. One after the other:
// some of these keep a machine busy.
func TestWholeTreeIsDeadBeforeTheLockIsGivenBack(t *testing.T) {
	for family, words := range families {
		for ending, end := range ends {
			t.Run(family+", "+ending, func(t *testing.T) {
				p := play(t, stage(t), words...)
				p.Options.StopTimeout = 300 * time.Millisecond
				a, _ := p.Active(t, p.Lab.Machine(t, "a"))
				p.Grown(t)
				deleted := p.Deleted(t, "services", p.Options.Service, "ActiveStandbyElectorLock")
				at := tick.Now()
				end(t, a)
				select {
				case <-deleted:
				case <-time.After(soon):
					t.Fatal("the lock is not given back")
				}
				freed := tick.Now()
				if left := p.Processes(); len(left) > 0 {
					t.Errorf("%d processes live though the lock is free", len(left))
				}
				dead := p.Runs()[0].Last
				t.Logf("%v: dead after %v, lock given back after %v", p.Runs()[0].Procs, time.Duration(dead-at), time.Duration(freed-at))
				kit.Throughout(t, 100*time.Millisecond, "nothing lives", func() bool { return p.Runs()[0].Last == dead })
			})
		}
	}
}
