package e2e

import (
	"syscall"
	"testing"
	"time"

	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/must"
)

// ZooKeeper lets a stranger end the session of an active node that is cut off, or frozen, and has most of its lease left. The node that
// takes over waits until that has ended.
func TestASessionThatAStrangerEndsLeavesALeaseThatIsWaitedFor(t *testing.T) {
	for name, fault := range map[string]func(t *testing.T, a *kit.Supervisor){
		"cut off": func(t *testing.T, a *kit.Supervisor) { a.Host.Cut(t) },
		"frozen":  func(_ *testing.T, a *kit.Supervisor) { a.Signal(syscall.SIGSTOP) },
	} {
		t.Run(name, func(t *testing.T) {
			p := brief(t, stage(t))
			const owner = "owner:a password"
			must.OK(t, p.Conn().AddAuth("digest", []byte(owner)))
			secret, _ := secretOf(t, owner)
			auth := "  auth: {scheme: digest, file: " + secret + "}\n"
			ha, hb := p.Lab.Host(t, "a"), p.Lab.Host(t, "b")
			a := p.FromFile(t, ha, p.Config(t, ha, auth, kit.Command(p.Child())))
			run := p.On(t, soon, "a", 0)
			p.FromFile(t, hb, p.Config(t, hb, auth, kit.Command(p.Child())))
			p.Stands(t, hb)
			a.TwoGuardians(t)

			fault(t, a)
			kit.EndSession(t, p.Options.ZK[0], p.Path("services", p.Options.Service, "ActiveStandbyElectorLock"))
			next := p.On(t, soon, "b", run.First)
			waited, ran := time.Duration(next.First-p.Claimed(t, "b")), time.Duration(p.Runs()[0].Last-p.Claimed(t, "b"))
			t.Logf("b's child began %v after the claim, a's was alive until %v after it", waited, ran)
			if want := session * 61 / 100; waited < want-20*time.Millisecond { // lease, rates of clocks, a watchdog's slack
				t.Errorf("that is less than %v", want)
			}
			p.Alone(t, session/2, "b")
		})
	}
}
