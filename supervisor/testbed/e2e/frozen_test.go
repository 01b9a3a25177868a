package e2e

import (
	"slices"
	"syscall"
	"testing"
	"time"

	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/kit/tick"
	"understudy/supervisor/testbed/zktest"
)

// What is frozen does not answer, and whoever is left does its work. Thawed, it finds that it is too late for anything.
func TestNoTwoFreezesLetTwoRun(t *testing.T) {
	for name, victims := range map[string]func(s int, g []int) []int{
		"supervisor and a guardian": func(s int, g []int) []int { return []int{s, g[0]} },
		"a guardian":                func(_ int, g []int) []int { return g[:1] },
		"both guardians":            func(_ int, g []int) []int { return g },
	} {
		t.Run(name, func(t *testing.T) {
			p := brief(t, stage(t), "term=ignore", "daemons=1", "every=2ms")
			p.Options.StopTimeout = 300 * time.Millisecond
			a, _, run := p.OnTwoHosts(t)
			frozen := victims(a.Pid, a.TwoGuardians(t))
			kit.Signal(syscall.SIGSTOP, frozen...)
			if frozen[0] == a.Pid {
				next := p.On(t, soon, "b", run.First)
				p.Alone(t, session/2, next.Node)
			} else {
				kit.Throughout(t, 2*session, "somebody runs again in time", func() bool {
					return time.Duration(tick.Now()-last(p.Runs())) < session+500*time.Millisecond+grace+kit.Stall
				})
			}
			kit.Signal(syscall.SIGCONT, frozen...)
			running := p.WaitRun(t, soon, "somebody runs", func(kit.Run) bool { return true })
			p.Alone(t, time.Second, running.Node)
			if frozen[0] == a.Pid {
				p.Stands(t, a.Host)
			}
			kit.Until(t, soon, "a has two guardians", func() bool { return len(a.Guardians()) == 2 })
		})
	}
}

// A follower that lost its leader goes on answering pings and reads until it notices: it is given a long time for that. Of two services
// one has an active node that knows no other server, the other one's knows them all.
func TestFollowerThatLostItsLeaderDeceivesNobody(t *testing.T) {
	s := kit.NewStage(t, 3, zktest.Config{SyncLimit: 30})
	follower := (s.ZK.Leader() + 1) % len(s.Servers)
	rest := slices.Delete(slices.Clone(s.Servers), follower, follower+1)
	p, other := brief(t, s), brief(t, s)
	p.Cluster, other.Cluster = kit.Look(t, rest, p.Options.Root), kit.Look(t, rest, other.Options.Root)
	p.Options.ZK = s.Servers[follower : follower+1]
	a, run := p.Active(t, p.Lab.Host(t, "a"))
	p.Options.ZK = rest
	b := p.Standby(t, p.Lab.Host(t, "b"))
	other.OnTwoHosts(t)
	at := tick.Now()
	s.Hosts[follower].CutFrom(t, s.Others(follower)...)
	kit.Throughout(t, 2*session, "somebody runs where all servers are known", func() bool {
		return time.Duration(tick.Now()-last(other.Runs())) < session+500*time.Millisecond+grace+kit.Stall
	})
	next := p.On(t, 2*soon, b.Host.Name, run.First)
	t.Logf("the child was dead after %v, succeeded after %v", time.Duration(p.Runs()[0].Last-at), time.Duration(next.First-at))
	p.Alone(t, session, "b")
	s.Hosts[follower].Heal(t)
	s.Ready(t)
	p.Stands(t, a.Host)
	p.Alone(t, time.Second, "b")
}

// last is the newest sign of life.
func last(runs []kit.Run) int64 {
	var newest int64
	for _, r := range runs {
		newest = max(newest, r.Last)
	}
	return newest
}
