package e2e

import (
	"testing"
	"time"

	"understudy/packaging/need"
	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/kit/tick"
)

// Supervisor and guardians are killed at once, and nobody is left to close the session. The next supervisor of that machine does, once it has
// proved the programs dead: no node waits for the session's end, or for a delay. Play checks that no two run.
func TestASupervisorThatIsStartedAgainClosesTheSessionOfTheOneBefore(t *testing.T) {
	for name, c := range map[string]struct {
		kind    string
		standby bool
	}{"cgroup": {"cgroup", false}, "pidns": {"pidns", false}, "with a standby": {"cgroup", true}} {
		t.Run(name, func(t *testing.T) {
			need.These(t, c.kind)
			p := newPlay(t, stage(t), "term=ignore", "children=2", "daemons=2", "every=2ms")
			p.Options.Flags, p.Options.Grace = []string{"--contain", c.kind}, longGrace
			a, run := p.Active(t, p.Lab.Machine(t, "a"))
			if c.standby {
				p.Standby(t, p.Lab.Machine(t, "b"))
			}
			at := p.Unattended(t, a)
			began := tick.Now()
			p.Start(t, a.Host)
			next := p.Next(t, soon, run.First)
			t.Logf("%s runs it %v after the kill, %v after the supervisor's start", next.Node, time.Duration(next.First-at), time.Duration(next.First-began))
			if took := time.Duration(next.First - began); took > kit.Calm/2 {
				t.Errorf("it has waited for the session's end: %v", took)
			}
		})
	}
}
