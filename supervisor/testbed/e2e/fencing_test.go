package e2e

import (
	"syscall"
	"testing"
	"time"

	"understudy/packaging/need"
	"understudy/supervisor/testbed/kit"
)

// longGrace is longer than a test waits for anything.
const longGrace = 10 * soon

// inTime demands a run that does not wait for the grace.
func (p *play) inTime(t *testing.T, at int64) {
	t.Helper()
	t.Logf("running again after %v", time.Duration(p.Next(t, soon, at).First-at))
}

// The next supervisor of the machine finds the survivors and kills them. There is no doubt, so there is no waiting.
func TestSurvivingChildIsKilledByTheNextSupervisorOfTheMachine(t *testing.T) {
	need.These(t, "cgroup")
	p := brief(t, stage(t), "term=ignore", "daemons=2", "every=2ms")
	p.Options.Grace = longGrace
	h := p.Lab.Machine(t, "a")
	h.PowerOn(t) // a cgroup of its own: any supervisor that starts in the same one is the next
	a, _ := p.Active(t, h)
	at := p.Unattended(t, a)
	p.Alone(t, 500*time.Millisecond, "a") // it survived; else this test shows nothing
	p.Start(t, h)
	p.inTime(t, at)
	p.Alone(t, 500*time.Millisecond, "a")
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
			p := brief(t, stage(t))
			if c.runs {
				p.Options.Grace = longGrace
			}
			method := "fencing: {methods: [{exec: {command: " + c.command + ", timeout: 2s}}], on_failure: refuse}"
			hosts := []*kit.Host{p.Lab.Machine(t, "a"), p.Lab.Machine(t, "b")}
			a := p.FromFile(t, hosts[0], p.Config(t, hosts[0], "", kit.Command(p.Options.Child), method))
			run := p.On(t, soon, "a", 0)
			p.FromFile(t, hosts[1], p.Config(t, hosts[1], "", kit.Command(p.Options.Child), method))
			p.Stands(t, hosts[1])
			at := p.Unattended(t, a)
			kit.Signal(syscall.SIGKILL, p.Processes()...)
			if c.runs {
				p.inTime(t, at)
				return
			}
			kit.Throughout(t, session+2*grace+time.Second, "nobody runs", func() bool { return len(p.Runs()) == 1 })
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
