package promises

import (
	"syscall"
	"testing"
	"time"

	"understudy/supervisor/testbed/kit"
)

// P5. Of another machine nothing is known: the grace is waited for, from the first claim after the previous node's lock ended. A node
// that loses its session after the grace claims again, and need not wait again: its session has to outlast what else the machine does.
func TestGraceIsKeptForAnotherMachine(t *testing.T) {
	p := brief(t, stage(t))
	p.Options.Grace = 3 * time.Second
	a, run := p.Active(t, p.Lab.Machine(t, "a"))
	p.Options.Session = kit.Calm
	p.Standby(t, p.Lab.Machine(t, "b"))
	deleted := p.Deleted(t, "services", p.Options.Service, "ActiveStandbyElectorLock")
	p.Unattended(t, a)
	kit.Signal(syscall.SIGKILL, p.Processes()...)
	<-deleted
	claimed := p.Claimed(t, "b")
	grace := time.Duration(p.On(t, soon, "b", run.First).First - claimed)
	t.Logf("%v from the lock's claim to the child", grace)
	if grace < p.Options.Grace-20*time.Millisecond {
		t.Errorf("that is less than %v", p.Options.Grace)
	}
	if most := p.Options.Grace + kit.Stall; grace > most {
		t.Errorf("that is more than %v", most)
	}
}
