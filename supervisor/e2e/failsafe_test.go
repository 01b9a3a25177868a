package e2e

import (
	"encoding/json"
	"testing"
	"time"

	"understudy/election"
	"understudy/supervisor/e2e/kit"
	"understudy/supervisor/e2e/kit/tick"
)

const (
	failsafe     = "on_zookeeper_loss: failsafe"
	promised     = kit.LongSession // for how long a promise binds
	listsWritten = time.Second     // after which the active one knows that the list is written
)

// Nodes that are cut off from all servers take them for gone.
func TestWithoutZooKeeper(t *testing.T) {
	t.Parallel()
	t.Run("a failsafe child stops when a member is silent", failsafeSilence)
	t.Run("a failsafe child stops when a member sees ZooKeeper", failsafeSeen)
	t.Run("a promise outlives its supervisor", failsafeRestart)
	t.Run("a newcomer does not take a delay for a proof", failsafeNewcomer)
	t.Run("a failsafe child without any other member stops", failsafeAlone)
}

// failsafes starts an active one on a, and standbys, all of them with agents.
func (p *play) failsafes(t *testing.T, standbys ...string) (all map[string]*kit.Supervisor, run kit.Run) {
	t.Helper()
	p.Options.Session = kit.LongSession
	all = map[string]*kit.Supervisor{}
	for _, name := range append([]string{"a"}, standbys...) {
		h := p.Lab.Host(t, name)
		all[name] = p.FromFile(t, h, p.Config(t, h, withAgent(t, sharedSecret), kit.Command(p.Options.Child), failsafe))
		if name == "a" {
			run = p.On(t, soon, "a", 0)
			continue
		}
		p.Stands(t, h)
	}
	kit.Until(t, soon, "the breadcrumb lists all standbys", func() bool {
		var crumb struct{ Failsafe election.Failsafe }
		data, _, err := p.Conn().Get(p.Path("services", p.Options.Service, "ActiveBreadCrumb"))
		return err == nil && json.Unmarshal(data, &crumb) == nil && len(crumb.Failsafe.Members) == len(standbys)
	})
	pauseFor(t, listsWritten)
	all["a"].TwoGuardians(t)
	return all, run
}

// again starts another supervisor in the place of one that was killed.
func (p *play) again(t *testing.T, s *kit.Supervisor) *kit.Supervisor {
	t.Helper()
	s.Kill9()
	kit.Until(t, soon, "the supervisor is dead", func() bool { return !s.Running() })
	return p.FromFile(t, s.Host, p.Config(t, s.Host, withAgent(t, sharedSecret), kit.Command(p.Options.Child), failsafe))
}

func pauseFor(t *testing.T, d time.Duration) {
	kit.Throughout(t, d, "time passes", func() bool { return true })
}

// One member that does not answer is enough: the child is dead when its promise is over.
func failsafeSilence(t *testing.T) {
	t.Parallel()
	p := brief(t, stage(t), "daemons=1", "every=2ms")
	all, _ := p.failsafes(t, "b", "c")
	for _, one := range all {
		one.Host.CutFrom(t, p.Addrs()...)
	}
	p.Alone(t, 2*kit.LongSession, "a")
	all["c"].Kill9()
	at := tick.Now()
	kit.Until(t, soon, "the child is dead", func() bool { return len(p.Running()) == 0 })
	dead := time.Duration(p.Runs()[0].Last - at)
	t.Logf("the child was dead %v after a member fell silent", dead)
	if !all["a"].Says("does not promise", "member=c") {
		t.Error("nobody is told which member was silent")
	}
	if dead > promised {
		t.Error("that is longer than its promise binds")
	}
	kit.Throughout(t, kit.LongSession, "nobody runs", func() bool { return len(p.Running()) == 0 })
	back := tick.Now()
	for _, one := range all {
		one.Host.Heal(t)
	}
	next := p.Next(t, 2*soon, at)
	t.Logf("%s runs again %v after the servers were seen", next.Node, time.Duration(next.First-back))
	p.Alone(t, kit.LongSession, next.Node)
}

// A node that is alone in not seeing ZooKeeper is given no promise, and stops when its lease ends.
func failsafeSeen(t *testing.T) {
	t.Parallel()
	p := brief(t, stage(t), "daemons=1", "every=2ms")
	all, run := p.failsafes(t, "b")
	at := tick.Now()
	all["a"].Host.CutFrom(t, p.Addrs()...)
	kit.Until(t, soon, "the child is dead", func() bool { return len(p.Running()) == 0 })
	dead := time.Duration(p.Runs()[0].Last - at)
	t.Logf("the child was dead after %v", dead)
	if !all["a"].Says("does not promise", "member=b", "ZooKeeper is there") {
		t.Error("nobody is told that b sees ZooKeeper")
	}
	if dead > kit.LongSession {
		t.Error("its session may have ended before")
	}
	p.On(t, 2*soon, "b", run.First)
	p.Alone(t, kit.LongSession, "b")
	all["a"].Host.Heal(t)
	p.Stands(t, all["a"].Host)
	p.Alone(t, time.Second, "b")
}

// Both nodes lose sight of ZooKeeper, and one promises. It is killed, comes back at once and sees ZooKeeper, while the other one,
// whom it cannot reach, still counts on the promise.
func failsafeRestart(t *testing.T) {
	t.Parallel()
	p := brief(t, stage(t), "daemons=1", "every=2ms", "term=ignore")
	p.Options.Grace = 0
	all, run := p.failsafes(t, "b")
	a, b := all["a"], all["b"]
	deleted := p.Deleted(t, "services", p.Options.Service, "ActiveStandbyElectorLock")
	a.Host.CutFrom(t, p.Addrs()...)
	b.Host.CutFrom(t, p.Addrs()...)
	<-deleted
	if running := p.Running(); len(running) != 1 {
		t.Fatalf("the session has ended, and %d run: nothing was promised", len(running))
	}
	a.Host.Cut(t)
	cut := tick.Now()
	p.again(t, b)
	b.Host.Heal(t)
	next := p.On(t, 2*soon, "b", run.First)
	last := p.Runs()[0].Last
	t.Logf("cut off from each other, one ran for another %v, and the other one began after %v", time.Duration(last-cut), time.Duration(next.First-cut))
	if last < cut {
		t.Error("it did not go on by the promise, so this shows nothing")
	}
	p.Alone(t, promised, "b")
	a.Host.Heal(t)
	p.Stands(t, a.Host)
	p.Alone(t, time.Second, "b")
}

// Two go on without ZooKeeper, one by the other's promise. Who was never asked for any waits for a proof, however long that takes.
func failsafeNewcomer(t *testing.T) {
	t.Parallel()
	p := brief(t, stage(t), "daemons=1", "every=2ms")
	p.Options.Grace = 0
	all, run := p.failsafes(t, "b")
	hc := p.Lab.Host(t, "c")
	deleted := p.Deleted(t, "services", p.Options.Service, "ActiveStandbyElectorLock")
	for _, one := range all {
		one.Host.CutFrom(t, append(p.Addrs(), hc.Addr)...)
	}
	<-deleted
	c := p.FromFile(t, hc, p.Config(t, hc, withAgent(t, sharedSecret), kit.Command(p.Options.Child), failsafe, "restart: {rejoin_after: 2s}"))
	kit.Until(t, 2*soon, "it is refused", func() bool { return c.Says("could not be fenced", "failsafe", "only a proof") })
	p.Alone(t, 2*kit.LongSession, "a")
	p.Untouched(t, run)
	for _, one := range all {
		one.Host.Heal(t)
	}
	next := p.Next(t, 2*soon, run.First)
	t.Logf("%s runs after all is well", next.Node)
	p.Alone(t, kit.LongSession, next.Node)
}

// A node that is alone has nobody who could tell it a loss of ZooKeeper from its own isolation.
func failsafeAlone(t *testing.T) {
	t.Parallel()
	p := brief(t, stage(t), "daemons=1", "every=2ms")
	all, _ := p.failsafes(t)
	all["a"].Host.CutFrom(t, p.Addrs()...)
	kit.Until(t, soon, "the child is dead", func() bool { return len(p.Running()) == 0 })
	all["a"].Host.Heal(t)
	p.Next(t, soon, p.Runs()[0].First)
	p.Alone(t, time.Second, "a")
}
