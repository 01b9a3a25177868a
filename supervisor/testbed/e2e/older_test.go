package e2e

import (
	"testing"
	"time"

	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/kit/tick"
	"understudy/supervisor/testbed/must"
	"understudy/supervisor/testbed/zktest"
)

// P1: ZooKeeper comes back with a copy of its data from before the active node's claim, while that node is cut off and its lease lasts. The
// other node has seen the claim, or finds what the supervisor before it has seen. Play checks that tokens grow.
func TestAnOlderCopyOfTheDataLetsNoTwoRun(t *testing.T) {
	const longer = 16 * time.Second // its lease is longer than what the standby's own session and grace would have it wait
	for _, c := range []struct {
		name  string
		again bool // the supervisor of the standby is started after the restore
	}{{"connected", false}, {"started again", true}} {
		t.Run(c.name, func(t *testing.T) {
			s := kit.NewStage(t, 1, zktest.Config{})
			p := suite.Play(t, s, "term=ignore", "every=2ms")
			p.Options.StopTimeout = time.Second
			p.Options.Session = longer // the standby's is shorter, see below
			a, b := p.Lab.Host(t, "a"), p.Lab.Host(t, "b")
			// The folders of the service are older than the copy.
			first := p.Start(t, a)
			p.Next(t, soon, 0)
			first.Stop(t)
			must.OK(t, s.ZK.Stop(0))
			must.OK(t, s.ZK.Copy(0))
			must.OK(t, s.ZK.StartServer(0))
			s.Ready(t)

			before := tick.Now()
			p.Start(t, a)
			p.Accounts.On(t, soon, "a", before)
			p.Options.Session = session
			standby := p.Standby(t, b)
			if c.again {
				standby.Stop(t)
			}
			must.OK(t, s.ZK.Kill(0))
			must.OK(t, s.ZK.Restore(0))
			a.Cut(t)
			at := tick.Now()
			must.OK(t, s.ZK.StartServer(0))
			if c.again {
				p.Start(t, b)
			}
			next := p.Accounts.On(t, longer+2*soon, "b", at)
			t.Logf("b runs it %v after the restore", time.Duration(next.First-at))
			a.Heal(t)
		})
	}
}
