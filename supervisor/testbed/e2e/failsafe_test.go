package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"understudy/election"
	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/must"
	"understudy/supervisor/testbed/zktest"
)

// failsafeSession outlasts a busy machine.
const failsafeSession = 3 * kit.Stall

// failsafePair has a failsafe program run on a, and b stand by, on whose promise it relies. serve starts another node.
func failsafePair(t *testing.T, s *kit.Stage) (p *play, serve func(*kit.Host) *kit.Supervisor, a, b *kit.Supervisor, run kit.Run) {
	t.Helper()
	p = newPlay(t, s)
	p.Options.Session = failsafeSession
	secret := filepath.Join(t.TempDir(), "agent.secret")
	must.OK(t, os.WriteFile(secret, []byte("a secret that all of them share\n"), 0o600))
	serve = func(h *kit.Host) *kit.Supervisor {
		agent := fmt.Sprintf("fencing: {agent: {listen: \":8438\", secret_file: %q}}\n", secret)
		return p.FromFile(t, h, p.Config(t, h, agent, kit.Command(p.Options.Child), "on_zookeeper_loss: failsafe"))
	}
	a = serve(p.Lab.Host(t, "a"))
	run = p.On(t, soon, "a", 0)
	b = serve(p.Lab.Host(t, "b"))
	kit.Until(t, soon, "the breadcrumb lists the standby", func() bool {
		var crumb struct{ Failsafe election.Failsafe }
		data, _, err := p.Conn().Get(p.Path("services", p.Options.Service, "ActiveBreadCrumb"))
		return err == nil && json.Unmarshal(data, &crumb) == nil && len(crumb.Failsafe.Members) == 1
	})
	p.Alone(t, failsafeSession/8, "a") // the active one knows by then that the list is written
	return p, serve, a, b, run
}

// The whole ensemble is down for longer than a session lasts, and the program does not notice. A standby that does not answer for a third
// of a session timeout would end that, as one that stands still, or is started again, does: the simulation has both.
func TestFailsafeChildGoesOnWithoutZooKeeper(t *testing.T) {
	s := kit.NewStage(t, 3, zktest.Config{})
	p, _, a, b, run := failsafePair(t, s)
	for i := range s.Servers {
		must.OK(t, s.ZK.Kill(i))
	}
	p.Alone(t, failsafeSession, "a")
	kit.Until(t, soon, "it is told", func() bool { return a.Says("failsafe", p.Options.Service) })
	for i := range s.Servers {
		must.OK(t, s.ZK.StartServer(i))
	}
	s.Ready(t)
	p.Alone(t, failsafeSession/4, "a")
	p.Untouched(t, run)
	p.Stands(t, b.Host)
	kit.Until(t, soon, "the end of it is told", func() bool { return a.Says("failsafe is over") })
	a.Stop(t)
	p.Next(t, soon, run.First)
}

// The network between all nodes and the servers is gone until the session has expired. The lock is free then, and the standby leaves it to the
// node whose program runs: its next session takes it again, and the program does not notice. It keeps its token, by which operators name it.
func TestFailsafeChildOutlastsItsSession(t *testing.T) {
	s := kit.NewStage(t, 1, zktest.Config{})
	p, _, a, b, run := failsafePair(t, s)
	lock := p.Path("services", p.Options.Service, "ActiveStandbyElectorLock")
	_, first, err := p.Conn().Get(lock)
	must.OK(t, err)
	a.Host.CutFrom(t, p.Addrs()...)
	b.Host.CutFrom(t, p.Addrs()...)
	kit.Until(t, 2*failsafeSession+soon, "the session has expired", func() bool {
		there, _, err := p.Conn().Exists(lock)
		return err == nil && !there
	})
	a.Host.Heal(t)
	b.Host.Heal(t)
	kit.Until(t, soon, "the lock is taken again", func() bool {
		data, stat, err := p.Conn().Get(lock)
		var held election.Lock
		return err == nil && json.Unmarshal(data, &held) == nil && held.Node == "a" && held.Token == first.Czxid && stat.Czxid > first.Czxid
	})
	p.Alone(t, failsafeSession, "a")
	p.Untouched(t, run)
	p.Stands(t, b.Host)
	kit.Until(t, soon, "it is told", func() bool { return a.Says("this node has it again", p.Options.Service) })
	p.order(t, b.Host, "switchover", p.Options.Service)
	p.Next(t, soon, run.First)
}

// A node that was never asked takes the lock as soon as the session has expired. The agent there proves the death, and the program is not kept.
func TestFailsafeChildEndsWhenAnotherNodeHasClaimed(t *testing.T) {
	s := kit.NewStage(t, 1, zktest.Config{})
	p, serve, a, b, run := failsafePair(t, s)
	a.Host.CutFrom(t, p.Addrs()...)
	b.Host.CutFrom(t, p.Addrs()...)
	kit.Until(t, soon, "it runs by a promise", func() bool { return a.Says("all other nodes agreed", p.Options.Service) })
	serve(p.Lab.Host(t, "c"))
	next := p.Next(t, 2*failsafeSession+soon, run.First)
	if next.Node != "c" {
		t.Fatalf("it runs on %s", next.Node)
	}
	a.Host.Heal(t)
	b.Host.Heal(t)
	p.Alone(t, failsafeSession/2, "c")
}
