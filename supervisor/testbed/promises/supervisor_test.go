package promises

import (
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	"understudy/packaging/need"
	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/kit/tick"
)

// P6. What the code takes shows in the quickest hand-over: nothing in it waits for a timer. What a machine adds, `make bench` tells.
const atOnce = session / 16

func TestStoppedSupervisorHandsOverAtOnce(t *testing.T) {
	handsOver(t, func(active *kit.Supervisor) { active.Signal(syscall.SIGTERM) })
}

func TestKilledSupervisorHandsOverAtOnce(t *testing.T) { handsOver(t, (*kit.Supervisor).Kill9) }

func handsOver(t *testing.T, fault func(active *kit.Supervisor)) {
	t.Helper()
	p := play(t, stage(t))
	gaps, outages := p.Relay(t, 5, p.Lab.Host(t, "a"), p.Lab.Host(t, "b"), fault)
	t.Logf("gap: %s; from the signal: %s", kit.Summary(gaps), kit.Summary(outages))
	if kit.Quantile(outages, 0) > atOnce {
		t.Errorf("even the quickest took more than %v", atOnce)
	}
}

func TestCleanStopLeavesNothingBehind(t *testing.T) {
	p := play(t, stage(t))
	a, _ := p.Active(t, p.Lab.Host(t, "a"))
	p.Sync(t)
	if crumb, ok := p.BreadCrumb(p.Options.Service); !ok || crumb.Node != "a" {
		t.Errorf("while the child runs the breadcrumb is %+v, %v", crumb, ok)
	}
	a.Stop(t)
	p.Sync(t)
	if _, ok := p.Lock(p.Options.Service); ok || !p.NoBreadCrumb(p.Options.Service) {
		t.Error("lock or breadcrumb are still there")
	}
	if left := p.Processes(); len(left) > 0 {
		t.Errorf("processes left: %v", left)
	}
	if _, ok := p.Member(p.Options.Service, "a"); ok {
		t.Error("the member is still there")
	}
}

func TestKilledGuardianIsReplaced(t *testing.T) {
	p := play(t, stage(t))
	a, _, run := p.OnTwoHosts(t)
	for range 2 {
		before := a.TwoGuardians(t)
		kit.Signal(syscall.SIGKILL, before[0])
		kit.Until(t, soon, "another guardian is there", func() bool {
			now := a.Guardians()
			return len(now) == 2 && !slices.Contains(now, before[0])
		})
		kit.Until(t, soon, "the loss is logged", func() bool { return a.Says("guardian replaced", fmt.Sprint("gone=", before[0])) })
		p.Untouched(t, run)
	}
	kit.Throughout(t, time.Second, "the child runs", func() bool { return len(p.Running()) == 1 })
	p.Untouched(t, run)
}

// Of supervisor and guardians any two may be killed, in any order (the simulation has each), and nothing of the child outlives them.
func TestNoTwoDeathsLeaveAChildAlive(t *testing.T) {
	kill := func(pids ...int) { kit.Signal(syscall.SIGKILL, pids...) }
	for name, fault := range map[string]func(supervisor int, guardians []int){
		"supervisor, then a guardian": func(s int, g []int) { kill(s, g[0]) },
		"supervisor and a guardian":   func(s int, g []int) { kit.KillAtOnce(s, g[0]) },
		"both guardians":              func(s int, g []int) { kit.KillAtOnce(g...) },
		"one guardian after the other": func(s int, g []int) {
			kit.Signal(syscall.SIGSTOP, s) // it must not replace the first one in time, however long this test stands still between the two
			kill(g[1], g[0])
			kit.Signal(syscall.SIGCONT, s)
		},
		"supervisor frozen, guardians": func(s int, g []int) { kit.Signal(syscall.SIGSTOP, s); kill(g[0]) },
	} {
		t.Run(name, func(t *testing.T) {
			p := brief(t, stage(t), "term=ignore", "children=2", "daemons=2", "every=5ms")
			p.Options.StopTimeout = 500 * time.Millisecond
			a, _, run := p.OnTwoHosts(t)
			at := tick.Now()
			fault(a.Pid, a.TwoGuardians(t))
			// A supervisor that lost only its guardians may be the quicker one.
			next := p.Next(t, soon, run.First)
			t.Logf("%s runs after %v", next.Node, time.Duration(next.First-at))
			previous := p.Runs()[0]
			kit.Throughout(t, 300*time.Millisecond, "the former child is dead", func() bool { return p.Runs()[0].Last == previous.Last })
		})
	}
}

// The third death leaves nobody who could kill, except where the kernel does it.
func TestThreeDeathsLeaveNoChildInAPidNamespace(t *testing.T) {
	need.These(t, "pidns")
	p := brief(t, stage(t), "term=ignore", "children=2", "daemons=2", "every=5ms")
	p.Options.Flags = []string{"--contain", "pidns"}
	a, b, run := p.OnTwoHosts(t)
	at := p.Unattended(t, a)
	kit.Until(t, soon, "the child is dead", func() bool { return tick.Now()-p.Runs()[0].Last > int64(200*time.Millisecond) })
	died := time.Duration(p.Runs()[0].Last - at)
	t.Logf("the last sign of life came %v after the kill", died)
	if died > session {
		t.Error("the session may have ended before")
	}
	p.On(t, session+kit.Grace+soon, b.Host.Name, run.First)
}

func TestFrozenSupervisorIsSucceededAndStandsByWhenThawed(t *testing.T) {
	p := brief(t, stage(t), "children=1", "daemons=1", "every=2ms")
	a, b, run := p.OnTwoHosts(t)
	at := tick.Now()
	next := p.Succeeds(t, takeover, b.Host.Name, run.First, func() { a.Signal(syscall.SIGSTOP) })
	p.Alone(t, session+time.Second-time.Duration(tick.Now()-at), "b") // until its session would have ended
	a.Signal(syscall.SIGCONT)
	p.Stands(t, a.Host)
	p.Alone(t, time.Second, "b")
	b.Signal(syscall.SIGTERM)
	p.On(t, soon, "a", next.First)
}

// A supervisor that was frozen for less than the lease goes on as if nothing had been.
func TestShortFreezeIsNotNoticed(t *testing.T) {
	p := play(t, stage(t))
	a, _, run := p.OnTwoHosts(t)
	a.Signal(syscall.SIGSTOP)
	p.Alone(t, session/4, "a")
	a.Signal(syscall.SIGCONT)
	p.Alone(t, session/4, "a")
	p.Untouched(t, run)
}
