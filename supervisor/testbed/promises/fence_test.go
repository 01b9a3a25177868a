package promises

import (
	"syscall"
	"testing"
	"time"

	"understudy/supervisor/testbed/kit"
)

// P5. Of another machine nothing is known: the grace is waited for, from the claim of the lock on.
func TestGraceIsKeptForAnotherMachine(t *testing.T) {
	p := brief(t, stage(t))
	p.Options.Grace = 3 * time.Second
	a, run := p.Active(t, p.Lab.Machine(t, "a"))
	p.Standby(t, p.Lab.Machine(t, "b"))
	deleted := p.Deleted(t, "services", p.Options.Service, "ActiveStandbyElectorLock")
	p.Unattended(t, a)
	kit.Signal(syscall.SIGKILL, p.Processes()...)
	<-deleted
	next := p.On(t, soon, "b", run.First)
	grace := time.Duration(next.First - p.Claimed(t, "b"))
	t.Logf("%v from the lock's claim to the child", grace)
	if grace < p.Options.Grace-20*time.Millisecond {
		t.Errorf("that is less than %v", p.Options.Grace)
	}
	if grace > 2*p.Options.Grace {
		t.Errorf("that is more than %v", p.Options.Grace)
	}
}
