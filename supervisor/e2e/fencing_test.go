package e2e

import (
	"syscall"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"understudy/supervisor/e2e/kit"
	"understudy/supervisor/e2e/kit/tick"
)

// longGrace is easily told from the time a session takes to end.
const longGrace = 8 * time.Second

// inTime demands that the next run began after the session's end, and did not wait for the grace.
func (p *play) inTime(t *testing.T, at int64) {
	t.Helper()
	stood := kit.Stood(t)
	took := time.Duration(p.Next(t, 2*soon, at).First - at)
	t.Logf("running again after %v", took)
	if took-stood() > session+1500*time.Millisecond {
		kit.Late(t, "it waited for the grace, though nothing can be alive")
	}
}

// The next supervisor of the machine finds the survivors and kills them. There is no doubt, so there is no waiting.
func TestSurvivingChildIsKilledByTheNextSupervisorOfTheMachine(t *testing.T) {
	kit.Need(t, "cgroup") // and nothing beside this: any supervisor of a node "a" that starts on this kernel would be the next
	p := newPlay(t, stage(t), "term=ignore", "daemons=2", "every=2ms")
	p.Options.Grace = longGrace
	h := p.Lab.Machine(t, "a")
	a, _ := p.Active(t, h)
	at := p.Unattended(t, a)
	p.Alone(t, 500*time.Millisecond, "a") // it survived; else this test shows nothing
	p.Start(t, h)
	p.inTime(t, at)
	p.Alone(t, 500*time.Millisecond, "a")
}

// The same by a standby of another name on the same machine.
func TestSurvivingChildIsKilledByAStandbyOfTheMachine(t *testing.T) {
	kit.Need(t, "cgroup")
	t.Parallel()
	p := newPlay(t, stage(t), "term=ignore", "daemons=2", "every=2ms")
	p.Options.Grace = longGrace
	h := p.Lab.Machine(t, "a")
	a, _ := p.Active(t, h)
	p.Options.Node = "a2"
	p.Start(t, h)
	p.WaitStandby(t, soon, p.Options.Service, "a2")
	at := p.Unattended(t, a)
	p.inTime(t, at)
	p.Alone(t, 500*time.Millisecond, "a2")
}

// What ran before a machine's boot is dead.
func TestNothingIsFearedAfterAReboot(t *testing.T) {
	t.Parallel()
	p := newPlay(t, stage(t))
	p.Options.Grace = longGrace
	h := p.Lab.Machine(t, "a")
	a, _ := p.Active(t, h)
	at := p.Unattended(t, a)
	kit.Signal(syscall.SIGKILL, p.Processes()...)
	h.Reboot(t)
	p.Start(t, h)
	p.inTime(t, at)
}

// Of another machine nothing is known: the grace is waited for, from the claim of the lock on.
func TestGraceIsKeptForAnotherMachine(t *testing.T) {
	t.Parallel()
	p := newPlay(t, stage(t))
	p.Options.Grace = 3 * time.Second
	a, run := p.Active(t, p.Lab.Machine(t, "a"))
	p.Standby(t, p.Lab.Machine(t, "b"))
	deleted := p.Deleted(t, "services", p.Options.Service, "ActiveStandbyElectorLock")
	p.Unattended(t, a)
	kit.Signal(syscall.SIGKILL, p.Processes()...)
	<-deleted
	next := p.On(t, soon, "b", run.First)
	grace := time.Duration(next.First - p.claimed(t, "b"))
	t.Logf("%v from the lock's claim to the child", grace)
	if grace < p.Options.Grace-20*time.Millisecond {
		kit.Broken(t, "that is less than %v", p.Options.Grace)
	}
	if grace > p.Options.Grace+time.Second {
		kit.Late(t, "that is more than %v", p.Options.Grace)
	}
}

// claimed is when, on CLOCK_MONOTONIC, a node took the lock that it has, as the server tells: whoever watches may hear of it late.
func (p *play) claimed(t *testing.T, node string) int64 {
	t.Helper()
	var stat *zk.Stat
	kit.Until(t, soon, node+" has the lock", func() bool {
		var err error
		lock, ok := p.Lock(p.Options.Service)
		_, stat, err = p.Conn().Get(p.Path("services", p.Options.Service, "ActiveStandbyElectorLock"))
		return err == nil && ok && lock.Node == node && lock.Czxid == stat.Czxid
	})
	return tick.Now() - int64(time.Since(time.UnixMilli(stat.Ctime)))
}

// The operator's word ends the waiting at once.
func TestConfirmedDeathEndsTheGrace(t *testing.T) {
	t.Parallel()
	p := newPlay(t, stage(t))
	p.Options.Grace = time.Minute
	a, run := p.Active(t, p.Lab.Machine(t, "a"))
	b := p.Lab.Machine(t, "b")
	p.Standby(t, b)
	p.Unattended(t, a)
	kit.Signal(syscall.SIGKILL, p.Processes()...)
	kit.Until(t, soon, "b has the lock", func() bool {
		lock, ok := p.Lock(p.Options.Service)
		return ok && lock.Node == "b"
	})
	kit.Throughout(t, time.Second, "nobody runs", func() bool { return len(p.Runs()) == 1 })
	answer := b.Ask(t, "fence", "confirm", p.Options.Service, "--node", "a", "--zk", p.Options.ZK[0], "--root", p.Options.Root)
	if answer.Code != 0 {
		t.Fatalf("fence confirm: %+v", answer)
	}
	at := tick.Now()
	next := p.On(t, soon, "b", run.First)
	t.Logf("running %v after the confirmation", time.Duration(next.First-at))
	p.Alone(t, 300*time.Millisecond, "b")
}

// A method that says "dead" ends the waiting; methods that all fail keep the service down until somebody confirms.
func TestFencingMethodDecides(t *testing.T) {
	for name, c := range map[string]struct {
		command string
		runs    bool
	}{
		"dead":      {"[\"true\"]", true},
		"not known": {"[\"false\"]", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlay(t, stage(t))
			p.Options.Grace = longGrace
			method := "fencing: {methods: [{exec: {command: " + c.command + ", timeout: 2s}}], on_failure: refuse}"
			hosts := []*kit.Host{p.Lab.Machine(t, "a"), p.Lab.Machine(t, "b")}
			a := p.fromFile(t, hosts[0], p.file(t, hosts[0], "", command(p.Options.Child), method))
			run := p.On(t, soon, "a", 0)
			p.fromFile(t, hosts[1], p.file(t, hosts[1], "", command(p.Options.Child), method))
			p.Stands(t, hosts[1])
			at := p.Unattended(t, a)
			kit.Signal(syscall.SIGKILL, p.Processes()...)
			if c.runs {
				p.inTime(t, at)
				return
			}
			kit.Throughout(t, session+longGrace+time.Second, "nobody runs", func() bool { return len(p.Runs()) == 1 })
			if crumb, ok := p.BreadCrumb(p.Options.Service); !ok || crumb.Node != "a" {
				t.Errorf("the breadcrumb is gone: %v, %+v", ok, crumb)
			}
			answer := hosts[1].Ask(t, "fence", "confirm", p.Options.Service, "--node", "a", "--zk", p.Options.ZK[0], "--root", p.Options.Root)
			if answer.Code != 0 {
				t.Fatalf("fence confirm: %+v", answer)
			}
			p.On(t, 2*soon, "b", run.First)
		})
	}
}

// A supervisor that is started again, as a service manager does, ends what its predecessor left behind, also when another
// machine is about to take over.
func TestRestartedSupervisorKillsWhatItsPredecessorLeft(t *testing.T) {
	kit.Need(t, "cgroup")
	t.Parallel()
	p := newPlay(t, stage(t), "term=ignore", "daemons=2", "every=2ms")
	h := p.Lab.Machine(t, "a")
	a, run := p.Active(t, h)
	p.Standby(t, p.Lab.Machine(t, "b"))
	at := p.Unattended(t, a)
	p.Start(t, h)
	p.Next(t, soon, run.First)
	former := p.Runs()[0]
	t.Logf("what was left lived for %v", time.Duration(former.Last-at))
	kit.Throughout(t, time.Second, "the former child is dead", func() bool { return p.Runs()[0].Last == former.Last })
}
