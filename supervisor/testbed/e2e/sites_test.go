package e2e

import (
	"testing"
	"time"

	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/kit/tick"
	"understudy/supervisor/testbed/zktest"
)

// docs/zookeeper.md, "Two sites and a third": the line between the two may break, and each site may be lost; one copy runs.
func TestTwoSitesAndAThird(t *testing.T) {
	s := kit.NewStage(t, 3, zktest.Config{})
	p := brief(t, s)
	one, other, third := s.Hosts[0], s.Hosts[1], s.Hosts[2]
	p.Active(t, one)
	p.Standby(t, other)
	runs := func() {
		t.Helper()
		kit.Throughout(t, 2*session, "somebody runs again in time", func() bool {
			return time.Duration(tick.Now()-last(p.Runs())) < session+500*time.Millisecond+grace+kit.Stall
		})
	}
	one.CutFrom(t, other.Addr)
	runs()
	one.Heal(t)
	s.Ready(t)
	running := p.WaitRun(t, soon, "somebody runs", func(kit.Run) bool { return true })
	p.Alone(t, session, running.Node)
	third.CutFrom(t, one.Addr, other.Addr)
	runs()
	third.Heal(t)
	s.Ready(t)
	lost, next := one, other
	if running = p.WaitRun(t, soon, "somebody runs", func(kit.Run) bool { return true }); running.Node == other.Name {
		lost, next = other, one
	}
	lost.CutFrom(t, next.Addr, third.Addr)
	p.On(t, 2*soon, next.Name, running.First)
	p.Alone(t, session, next.Name)
	lost.Heal(t)
	s.Ready(t)
	p.Stands(t, lost)
	p.Alone(t, time.Second, next.Name)
}
