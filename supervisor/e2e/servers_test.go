package e2e

import (
	"testing"
	"time"

	"understudy/election/zktest"
	"understudy/supervisor/e2e/kit"
	"understudy/supervisor/e2e/kit/tick"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// These share three servers of their own, one after the other.
func TestZooKeeperFaults(t *testing.T) {
	s := kit.NewStage(t, 3, zktest.Config{})
	t.Run("the child does not notice when the leader is killed", func(t *testing.T) { leaderKilled(t, s) })
	t.Run("the child does not notice when the servers are restarted one by one", func(t *testing.T) { rolled(t, s) })
	t.Run("all servers frozen for a moment", func(t *testing.T) { hiccup(t, s) })
	t.Run("all servers down", func(t *testing.T) { allDown(t, s) })
	t.Run("all data lost", func(t *testing.T) { wiped(t, s) })
}

// calm is a play with the default's session: that much time has what is about to happen, on a machine that is busy too.
func calm(t *testing.T, s *kit.Stage) *play {
	t.Helper()
	p := newPlay(t, s)
	p.Options.Session = longSession
	return p
}

func leaderKilled(t *testing.T, s *kit.Stage) {
	p := calm(t, s)
	a, _, run := p.pair(t)
	leader := s.ZK.Leader()
	must(t, s.ZK.Kill(leader))
	p.Alone(t, longSession+time.Second, "a")
	must(t, s.ZK.StartServer(leader))
	s.Ready(t)
	p.Alone(t, longSession, "a")
	p.Untouched(t, run)
	p.Stands(t, p.Started[1].Host)
	a.Stop(t)
	p.On(t, soon, "b", run.First)
}

func rolled(t *testing.T, s *kit.Stage) {
	p := calm(t, s)
	_, _, run := p.pair(t)
	for i := range s.Servers {
		must(t, s.ZK.Restart(i))
		s.Ready(t)
		p.Alone(t, session/4, "a")
	}
	p.Alone(t, longSession, "a")
	p.Untouched(t, run)
}

// hiccup is a pause of the whole ensemble, as of a disk that hangs.
func hiccup(t *testing.T, s *kit.Stage) {
	p := calm(t, s)
	_, _, run := p.pair(t)
	for i := range s.Servers {
		must(t, s.ZK.Freeze(i))
	}
	p.Alone(t, time.Second, "a")
	for i := range s.Servers {
		must(t, s.ZK.Thaw(i))
	}
	p.Alone(t, longSession, "a")
	p.Untouched(t, run)
}

func allDown(t *testing.T, s *kit.Stage) {
	p := newPlay(t, s, "daemons=1", "every=2ms")
	p.pair(t)
	at := tick.Now()
	for i := range s.Servers {
		must(t, s.ZK.Kill(i))
	}
	kit.Until(t, session, "the child is dead", func() bool { return len(p.Running()) == 0 })
	// The last write that could be acknowledged was sent before the first server died, so the session ends no earlier
	// than that plus its timeout.
	dead := time.Duration(p.Runs()[0].Last - at)
	t.Logf("the child was dead %v after the servers", dead)
	if dead > session {
		t.Error("the session may have ended before")
	}
	kit.Throughout(t, session+time.Second-time.Duration(tick.Now()-at), "nobody runs", func() bool { return len(p.Running()) == 0 })
	for i := range s.Servers {
		must(t, s.ZK.StartServer(i))
	}
	s.Ready(t)
	back := tick.Now()
	next := p.Next(t, soon, at)
	took := time.Duration(next.First - back)
	t.Logf("%s runs again %v after the servers serve", next.Node, took)
	if took > 3*time.Second {
		kit.Late(t, "that is more than 3s")
	}
	p.Alone(t, session, next.Node)
}

func wiped(t *testing.T, s *kit.Stage) {
	p := newPlay(t, s)
	p.freshTokens = true // ZooKeeper's transaction numbers, and so the tokens, begin anew
	p.pair(t)
	for i := range s.Servers {
		must(t, s.ZK.Kill(i))
	}
	for i := range s.Servers {
		must(t, s.ZK.Wipe(i))
	}
	at := tick.Now()
	for i := range s.Servers {
		must(t, s.ZK.StartServer(i))
	}
	s.Ready(t)
	back := tick.Now()
	next := p.Next(t, 2*soon, at)
	t.Logf("%s runs again %v after the servers serve", next.Node, time.Duration(next.First-back))
	p.Alone(t, session, next.Node)
	other := map[string]string{"a": "b", "b": "a"}[next.Node]
	kit.Until(t, soon, other+" stands by", func() bool {
		look := kit.Look(t, s.Servers, p.Options.Root) // an old client would not survive the loss
		m, ok := look.Member(p.Options.Service, other)
		return ok && m.Role == "standby"
	})
}

// A set-up with one server lives through its restart, if the session timeout leaves the time.
func TestSingleServerRestartIsNotNoticed(t *testing.T) {
	s := kit.NewStage(t, 1, zktest.Config{})
	for attempt := 1; ; attempt++ {
		p := calm(t, s)
		_, _, run := p.pair(t)
		began := time.Now()
		must(t, s.ZK.Kill(0))
		must(t, s.ZK.StartServer(0))
		s.Ready(t)
		down := time.Since(began)
		if down > 1500*time.Millisecond && attempt < 4 {
			t.Logf("the server was down for %v: too long to say anything", down)
			continue
		}
		t.Logf("the server was down for %v", down)
		p.Alone(t, 8*time.Second, "a")
		p.Untouched(t, run)
		return
	}
}
