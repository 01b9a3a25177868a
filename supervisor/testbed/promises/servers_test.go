package promises

import (
	"testing"
	"time"

	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/kit/tick"
	"understudy/supervisor/testbed/must"
)

// P7: the leader is killed, the servers are restarted one by one, and all of them stand still for a second, as when a disk hangs.
func TestFaultsOfServersThatEndAreNotNoticed(t *testing.T) {
	s := suite.Breakable(t)
	p := play(t, s)
	p.Options.Session = 5 * kit.Stall // a server may take ten seconds to come back
	a, b, run := p.OnTwoHosts(t)
	leader := s.ZK.Leader()
	must.OK(t, s.ZK.Kill(leader))
	p.Alone(t, time.Second, "a")
	must.OK(t, s.ZK.StartServer(leader))
	s.Ready(t)
	for i := range s.Servers {
		must.OK(t, s.ZK.Restart(i))
		s.Ready(t)
	}
	for i := range s.Servers {
		must.OK(t, s.ZK.Freeze(i))
	}
	p.Alone(t, time.Second, "a")
	for i := range s.Servers {
		must.OK(t, s.ZK.Thaw(i))
	}
	heartbeats := func() int32 {
		_, stat, err := p.Conn().Get(p.Path("nodes", "a"))
		if err != nil {
			return 0
		}
		return stat.Version
	}
	var before int32
	kit.Until(t, soon, "the servers answer", func() bool { before = heartbeats(); return before > 0 })
	kit.Until(t, soon, "they take heartbeats again", func() bool { return heartbeats() >= before+2 })
	p.Alone(t, time.Second, "a")
	p.Untouched(t, run)
	p.Stands(t, b.Host)
	a.Stop(t)
	p.On(t, soon, "b", run.First)
}

func TestLossOfAllServers(t *testing.T) {
	s := suite.Breakable(t)
	t.Run("for a while", func(t *testing.T) { allDown(t, s) })
	t.Run("with all data", func(t *testing.T) { wiped(t, s) })
}

func stop(t *testing.T, s *kit.Stage) {
	t.Helper()
	for i := range s.Servers {
		must.OK(t, s.ZK.Kill(i))
	}
}

func start(t *testing.T, s *kit.Stage) {
	t.Helper()
	for i := range s.Servers {
		must.OK(t, s.ZK.StartServer(i))
	}
	s.Ready(t)
}

// allDown stops all servers. P3: the last write that could be acknowledged was sent before the first server died, so the session ends no
// earlier than that plus its timeout, and the child has to.
func allDown(t *testing.T, s *kit.Stage) {
	p := brief(t, s, "daemons=1", "every=2ms")
	p.OnTwoHosts(t)
	at := tick.Now()
	stop(t, s)
	kit.Until(t, soon, "the child is dead", func() bool { return len(p.Running()) == 0 })
	dead := time.Duration(p.Runs()[0].Last - at)
	t.Logf("the child was dead %v after the servers", dead)
	if dead > session {
		t.Errorf("the session may have ended before")
	}
	kit.Throughout(t, session+time.Second-time.Duration(tick.Now()-at), "nobody runs", func() bool { return len(p.Running()) == 0 })
	start(t, s)
	back := tick.Now()
	next := p.Next(t, soon, at)
	t.Logf("%s runs again %v after the servers serve", next.Node, time.Duration(next.First-back))
}

func wiped(t *testing.T, s *kit.Stage) {
	p := brief(t, s)
	p.FreshTokens = true // ZooKeeper's transaction numbers, and so the tokens, begin anew
	p.OnTwoHosts(t)
	stop(t, s)
	for i := range s.Servers {
		must.OK(t, s.ZK.Wipe(i))
	}
	at := tick.Now()
	start(t, s)
	back := tick.Now()
	next := p.Next(t, 2*soon, at)
	t.Logf("%s runs again %v after the servers serve", next.Node, time.Duration(next.First-back))
	other := map[string]string{"a": "b", "b": "a"}[next.Node]
	kit.Until(t, soon, other+" stands by", func() bool {
		look := kit.Look(t, s.Servers, p.Options.Root) // an old client would not survive the loss
		m, ok := look.Member(p.Options.Service, other)
		return ok && m.Role == "standby"
	})
}
