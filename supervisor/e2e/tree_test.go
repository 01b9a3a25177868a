package e2e

import (
	"syscall"
	"testing"
	"time"

	"understudy/supervisor/e2e/kit"
	"understudy/supervisor/e2e/kit/tick"
)

// families are children that are hard to kill.
var families = map[string][]string{
	"ignores TERM":                   {"term=ignore"},
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

// P2: when the lock is free, nothing of the child is alive, neither by its own account nor in the process table.
func TestWholeTreeIsDeadBeforeTheLockIsGivenBack(t *testing.T) {
	for family, words := range families {
		for ending, end := range ends {
			t.Run(family+", "+ending, func(t *testing.T) {
				p := newPlay(t, stage(t), words...)
				p.Options.StopTimeout = 300 * time.Millisecond
				a, _ := p.Active(t, p.Lab.Machine(t, "a"))
				p.grown(t)
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

// The same, seen by the successor.
func TestSuccessorStartsAfterTheWholeTreeIsDead(t *testing.T) {
	for family, words := range families {
		t.Run(family, func(t *testing.T) {
			p := newPlay(t, stage(t), words...)
			p.Options.StopTimeout = 300 * time.Millisecond
			active, run := p.Active(t, p.Lab.Machine(t, "a"))
			standby := p.Standby(t, p.Lab.Machine(t, "b"))
			for _, end := range []string{"stopped", "killed -9", "stopped"} {
				p.grown(t)
				ends[end](t, active)
				run = p.On(t, soon, standby.Host.Name, run.First)
				kit.Until(t, soon, "the former active has ended", func() bool { return !active.Running() })
				active, standby = standby, p.Standby(t, active.Host)
			}
		})
	}
}

// grown waits until the newest run has all the processes that it wants.
func (p *play) grown(t *testing.T) {
	t.Helper()
	words := map[string]int{}
	for _, w := range p.Options.Child {
		switch w {
		case "children=100":
			words["child"], words["grandchild"] = 100, 100
		case "children=5":
			words["child"], words["grandchild"] = 5, 5
		case "daemons=5":
			words["daemon"] = 5
		case "daemons=2":
			words["daemon"] = 2
		case "chains=20":
			words["chain19"] = 1
		}
	}
	kit.Until(t, soon, "the family is complete", func() bool {
		runs := p.Runs()
		for kind, n := range words {
			if runs[len(runs)-1].Procs[kind] < n {
				return false
			}
		}
		return true
	})
}
