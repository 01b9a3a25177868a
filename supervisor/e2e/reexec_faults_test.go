package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"understudy/supervisor/e2e/kit"
)

// installed starts a pair whose active one runs from a binary of its own.
func (p *play) installed(t *testing.T) (b kit.Binary, a *kit.Supervisor, run kit.Run) {
	t.Helper()
	b = kit.Install(t)
	one, other := p.Lab.Host(t, "a"), p.Lab.Host(t, "b")
	p.Options.Binary = string(b)
	a, run = p.Active(t, one)
	p.Options.Binary = ""
	p.Standby(t, other)
	a.TwoGuardians(t)
	return b, a, run
}

// pretends makes a binary that promises to go on, and does something else then.
func pretends(t *testing.T, instead string) string {
	t.Helper()
	return kit.Script(t, fmt.Sprintf(`if [ "$1" = goes-on ]; then exec %s "$@"; fi`, kit.UnderstudyBinary(t))+"\n"+instead)
}

// becomes has a supervisor become what is installed, and returns when it is about to.
func becomes(t *testing.T, s *kit.Supervisor) {
	t.Helper()
	for asked := time.Now().Add(-time.Minute); !s.Says("handing over"); {
		if time.Since(asked) > 3*time.Second { // a busy machine may have it refused
			s.Signal(syscall.SIGUSR2)
			asked = time.Now()
		}
		kit.Reached(100*time.Millisecond, func() bool { return s.Says("handing over") })
	}
}

// A new version that passes the test and fails all the same is the supervisor's death, or its freezing: the child ends, the standby
// takes over, never both.
func TestABinaryThatBreaksItsPromiseIsASupervisorsDeath(t *testing.T) {
	t.Parallel()
	for name, instead := range map[string]string{
		"exits at once": "exit 3",
		"is no config":  "exec %s run --zk 127.0.0.1:1 --no-such-flag",
		"another node":  `n=$#; while [ $n -gt 0 ]; do w=$1; shift; [ "$w" != a ] || w=other; set -- "$@" "$w"; n=$((n-1)); done; exec %s "$@"`,
		"hangs":         "sleep 1000",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlay(t, stage(t))
			b, a, run := p.installed(t)
			b.Replace(t, pretends(t, strings.ReplaceAll(instead, "%s", kit.UnderstudyBinary(t))))
			becomes(t, a)
			p.On(t, soon, "b", run.Last)
			p.Alone(t, 500*time.Millisecond, "b")
		})
	}
}

// Whatever happens to the supervisor while it becomes another image: the child lives, or is handed over, never doubled.
func TestAnUpgradeThatIsInterruptedDoublesNothing(t *testing.T) {
	t.Parallel()
	faults := map[string]func(t *testing.T, a *kit.Supervisor){
		"killed": func(_ *testing.T, a *kit.Supervisor) { a.Kill9() },
		"killed with a guardian": func(_ *testing.T, a *kit.Supervisor) {
			kit.KillAtOnce(append(a.Guardians()[:1], a.Pid)...)
		},
		"guardian killed":       func(_ *testing.T, a *kit.Supervisor) { kit.KillAtOnce(a.Guardians()[:1]...) },
		"both guardians killed": func(_ *testing.T, a *kit.Supervisor) { kit.KillAtOnce(a.Guardians()...) },
		"frozen past its lease": func(t *testing.T, a *kit.Supervisor) {
			a.Signal(syscall.SIGSTOP)
			time.AfterFunc(session, func() { a.Signal(syscall.SIGCONT) })
		},
		"frozen shortly": func(t *testing.T, a *kit.Supervisor) {
			a.Signal(syscall.SIGSTOP)
			time.AfterFunc(200*time.Millisecond, func() { a.Signal(syscall.SIGCONT) })
		},
		"asked to stop": func(_ *testing.T, a *kit.Supervisor) { a.Signal(syscall.SIGTERM) },
		"asked again":   func(_ *testing.T, a *kit.Supervisor) { a.Signal(syscall.SIGUSR2) },
	}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := brief(t, stage(t))
			_, a, run := p.installed(t)
			a.Signal(syscall.SIGUSR2)
			after := rand.N(120 * time.Millisecond)
			<-time.After(after)
			fault(t, a)
			<-time.After(session) // a lease is over, and so is what it may lead to
			running := p.WaitRun(t, soon, "somebody runs", func(kit.Run) bool { return true })
			p.Alone(t, 300*time.Millisecond, running.Node)
			t.Logf("after %v: on %s, the same child: %v", after, running.Node, running.ID == run.ID)
		})
	}
}

// Without ZooKeeper nothing is handed over: the lease that is left is needed.
func TestAnUpgradeIsRefusedWhileZooKeeperDoesNotAnswer(t *testing.T) {
	t.Parallel()
	p := brief(t, stage(t))
	b := kit.Install(t)
	p.Options.Binary = string(b)
	p.Options.Session = 20 * time.Second // a lease of 11 s, of which more than half has to be over, and enough be left
	one := p.Lab.Host(t, "a")
	a, run := p.Active(t, one)
	one.CutFrom(t, p.Addrs()...)
	<-time.After(6 * time.Second)
	a.Signal(syscall.SIGUSR2)
	kit.Until(t, soon, "it is refused", func() bool { return a.Says("nothing is handed over", "acknowledged nothing") })
	one.Heal(t)
	kit.Throughout(t, session, "the child runs", func() bool { return len(p.Running()) == 1 })
	p.Untouched(t, run)
	b.Upgraded(t, a)
	p.Untouched(t, run)
}

// The next image cannot stand for election, so nobody would see that the lock is lost: the child does not run on without that.
func TestAChildDoesNotOutliveACandidateThatCannotStand(t *testing.T) {
	t.Parallel()
	p := brief(t, stage(t))
	_, a, run := p.installed(t)
	dir := path.Join(p.Options.Root, "services", p.Options.Service)
	let := func(perms int32) {
		t.Helper()
		_, err := p.Conn().SetACL(dir, zk.WorldACL(perms), -1)
		must(t, err)
	}
	let(zk.PermAll &^ zk.PermCreate)
	must(t, p.Conn().Delete(path.Join(dir, "preferred"), -1)) // has to be made again
	becomes(t, a)
	kit.Until(t, session, "the child is ended", func() bool { return len(p.Running()) == 0 })
	kit.Until(t, soon, "it is told", func() bool { return a.Says("cannot stand for election", "preferred") })
	let(zk.PermAll)
	next := p.Next(t, soon, run.First)
	p.Alone(t, 500*time.Millisecond, next.Node)
}

// A cut that comes with the upgrade: the lease that was left is all there is, and is not taken for a full one.
func TestALeaseIsNotLongerForAnUpgrade(t *testing.T) {
	t.Parallel()
	p := brief(t, stage(t))
	_, a, run := p.installed(t)
	becomes(t, a)
	at := time.Now()
	p.Lab.Host(t, "c") // takes a moment, as the exec does
	a.Host.CutFrom(t, p.Addrs()...)
	kit.Until(t, soon, "the child is ended", func() bool {
		for _, r := range p.Running() {
			if r.ID == run.ID {
				return false
			}
		}
		return true
	})
	if took := time.Since(at); took > session {
		t.Errorf("the child lived for %v", took)
	}
	p.On(t, soon, "b", run.First)
	p.Alone(t, 500*time.Millisecond, "b")
}

// What holds the child makes no difference, and neither do guardians that were replaced after an upgrade.
func TestUpgradesOfAPidNamespace(t *testing.T) {
	t.Parallel()
	p := newPlay(t, stage(t), "children=2", "daemons=2")
	p.Options.Flags = []string{"--contain", "pidns"}
	b, a, run := p.installed(t)
	for range 3 {
		b.Upgraded(t, a)
		before := a.TwoGuardians(t)
		kit.Signal(syscall.SIGKILL, before[0])
		kit.Until(t, soon, "another guardian is there", func() bool { return len(a.Guardians()) == 2 && !kit.Alive(before[0]) })
	}
	p.Untouched(t, run)
	a.Stop(t)
	p.On(t, soon, "b", run.First)
	p.Alone(t, 300*time.Millisecond, "b")
}

// A child that ends after an upgrade is noticed, and is started again where it was, under the token that it had.
func TestAChildIsLookedAfterOnceItWasHandedOver(t *testing.T) {
	t.Parallel()
	for _, contain := range []string{"cgroup", "pidns"} {
		t.Run(contain, func(t *testing.T) {
			t.Parallel()
			p := newPlay(t, stage(t))
			p.Options.Flags = []string{"--contain", contain}
			b, a, run := p.installed(t)
			b.Upgraded(t, a)
			b.Upgraded(t, a)
			pids := p.Processes()
			if len(pids) != 1 {
				t.Fatalf("processes: %v", pids)
			}
			kit.Signal(syscall.SIGUSR1, pids...) // it exits with 7
			again := p.On(t, soon, "a", run.First)
			if again.Token != run.Token {
				t.Errorf("the token was %d, and is %d", run.Token, again.Token)
			}
			if !a.Says("child ended", "exit code 7") {
				t.Error("it is not told how it ended")
			}
			b.Upgraded(t, a)
			a.Kill9()
			p.On(t, soon, "b", again.First)
			p.Alone(t, 300*time.Millisecond, "b")
		})
	}
}

// Several processes, a oneshot among them, with a health check: all of it goes on, and is undone in the end.
func TestAUnitOfSeveralProcessesIsHandedOver(t *testing.T) {
	t.Parallel()
	p, d := newPlay(t, stage(t)), newDiary(t)
	b := kit.Install(t)
	sick := filepath.Join(t.TempDir(), "sick")
	one := p.Lab.Machine(t, "a")
	s := one.UnderstudyAt(t, string(b), "run", "--config", p.Config(t, one, "", "processes:", d.oneshot("one"), d.ordinary("two", ", ready: {after: 100ms}"), d.ordinary("three", ""),
		fmt.Sprintf("health: {exec: [test, '!', -e, %s], interval: 50ms, timeout: 1s, failures: 3}", sick)))
	p.Started = append(p.Started, s)
	d.until(t, "+one +two +three")
	for range 3 {
		b.Upgraded(t, s)
	}
	d.until(t, "+one +two +three")
	must(t, os.WriteFile(sick, nil, 0o600))
	kit.Until(t, soon, "the health check goes on", func() bool { return s.Says("unhealthy") })
	must(t, os.Remove(sick))
	kit.Until(t, soon, "it is started anew", func() bool {
		return strings.HasPrefix(d.text(), "+one +two +three -three -two -one +one +two +three")
	})
	b.Upgraded(t, s)
	s.Stop(t)
	kit.Until(t, soon, "all is undone", func() bool { return strings.HasSuffix(d.text(), "+one +two +three -three -two -one") })
}

// Output that goes into a file, and a socket for notifications, are handed over as well: no line is lost, and nothing fails.
func TestOutputAndNotificationsAreHandedOver(t *testing.T) {
	t.Parallel()
	p := newPlay(t, stage(t))
	b := kit.Install(t)
	dir := t.TempDir()
	log, failed := filepath.Join(dir, "log"), filepath.Join(dir, "failed")
	script := fmt.Sprintf(`systemd-notify --ready; i=0; while :; do i=$((i+1)); echo line $i; [ $((i%%50)) != 0 ] || systemd-notify --status=$i || echo $i >>%s; sleep 0.003; done`, failed)
	one := p.Lab.Machine(t, "a")
	s := one.UnderstudyAt(t, string(b), "run", "--config",
		p.Config(t, one, "", "command: [sh, -c, '"+script+"']", "ready: {notify: true, timeout: 1m}", fmt.Sprintf("log: {file: %s}", log)))
	p.Started = append(p.Started, s)
	lines := func() []string {
		text, _ := os.ReadFile(log) // not there: nothing is written yet
		return strings.Split(strings.TrimSpace(string(text)), "\n")
	}
	kit.Until(t, soon, "it writes", func() bool { return len(lines()) > 50 })
	for range 5 {
		b.Upgraded(t, s)
	}
	n := len(lines())
	kit.Until(t, soon, "it writes on", func() bool { return len(lines()) > n+100 })
	s.Stop(t)
	for i, line := range lines() {
		if want := fmt.Sprint("line ", i+1); line != want {
			t.Fatalf("line %d is %q", i+1, line)
		}
	}
	if text, err := os.ReadFile(failed); err == nil {
		t.Errorf("notifications failed: %s", text)
	}
	if strings.Count(s.Log(), "child started") != 1 {
		t.Error("it was started anew")
	}
}

// A start that is under way is waited for.
func TestAnUpgradeWaitsForAStart(t *testing.T) {
	t.Parallel()
	p := newPlay(t, stage(t))
	b := kit.Install(t)
	one := p.Lab.Machine(t, "a")
	s := one.UnderstudyAt(t, string(b), "run", "--config", p.Config(t, one, "", kit.Command(p.Child()), "ready: {after: 2s}"))
	p.Started = append(p.Started, s)
	run := p.On(t, soon, "a", 0)
	b.Upgraded(t, s)
	if ready, handed := strings.Index(s.Log(), "child ready"), strings.Index(s.Log(), "handing over"); ready < 0 || ready > handed {
		t.Error("it was handed over before it was ready")
	}
	kit.Until(t, soon, "the member is well", func() bool {
		m, ok := p.Member(p.Options.Service, "a")
		return ok && m.Health == "ok"
	})
	p.Untouched(t, run)
}

// A config that was changed for the new version is taken up by it: what runs is started anew where it was.
func TestTheNextImageTakesTheChangedConfigUp(t *testing.T) {
	t.Parallel()
	p := newPlay(t, stage(t))
	b := kit.Install(t)
	one := p.Lab.Machine(t, "a")
	file := p.Config(t, one, "", kit.Command(p.Child()), "env: {SOME: thing}")
	s := one.UnderstudyAt(t, string(b), "run", "--config", file)
	p.Started = append(p.Started, s)
	run := p.On(t, soon, "a", 0)
	text, err := os.ReadFile(file)
	must(t, err)
	b.Replace(t, pretends(t, fmt.Sprintf("sed -i s/thing/else/ %s; exec %s \"$@\"", file, kit.UnderstudyBinary(t))))
	must(t, os.WriteFile(file, text, 0o600))
	becomes(t, s)
	again := p.On(t, soon, "a", run.First)
	if again.Token != run.Token {
		t.Errorf("the token was %d, and is %d", run.Token, again.Token)
	}
}

// What only a restart takes up is not taken up by an upgrade, at the price of what runs.
func TestAnUpgradeIsRefusedToAnotherCluster(t *testing.T) {
	t.Parallel()
	p := newPlay(t, stage(t))
	b := kit.Install(t)
	one := p.Lab.Machine(t, "a")
	file := p.Config(t, one, "", kit.Command(p.Child()))
	s := one.UnderstudyAt(t, string(b), "run", "--config", file)
	p.Started = append(p.Started, s)
	run := p.On(t, soon, "a", 0)
	text, err := os.ReadFile(file)
	must(t, err)
	must(t, os.WriteFile(file, []byte(strings.Replace(string(text), "root: "+p.Options.Root, "root: /elsewhere", 1)), 0o600))
	s.Signal(syscall.SIGUSR2)
	kit.Until(t, soon, "it is refused", func() bool { return s.Says("does not switch to", "zookeeper.root is /elsewhere", "restart") })
	p.Untouched(t, run)
	must(t, os.WriteFile(file, text, 0o600))
	b.Upgraded(t, s)
	p.Untouched(t, run)
}

// The agent answers for a child that was handed over: the supervisor, or, where that is frozen, the guardians that stayed.
func TestAnAgentAnswersForWhatWasHandedOver(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]func(a *kit.Supervisor){
		"asked":  func(*kit.Supervisor) {},
		"frozen": func(a *kit.Supervisor) { a.Signal(syscall.SIGSTOP) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := brief(t, stage(t), "daemons=1")
			p.Options.Grace = longGrace
			a, b, run := p.agents(t, sharedSecret, sharedSecret, "fencing: {methods: [{agent: {}}], on_failure: refuse}")
			for n := range 2 {
				said := func() int {
					return strings.Count(a.Log(), "nothing is handed over") + strings.Count(a.Log(), "does not switch to")
				}
				refused := said()
				a.Signal(syscall.SIGUSR2)
				kit.Until(t, 2*soon, "it goes on", func() bool {
					if now := said(); now > refused { // a busy machine may have it refused
						refused = now
						a.Signal(syscall.SIGUSR2)
					}
					return strings.Count(a.Log(), "taken over") == n+1 && strings.Count(a.Log(), "listening") == n+2
				})
			}
			p.Untouched(t, run)
			a.Host.CutFrom(t, p.Addrs()...)
			fault(a)
			p.On(t, 2*soon, "b", run.First)
			p.fencedBy(t, b.Host, "agent")
			p.Alone(t, 500*time.Millisecond, "b")
			a.Signal(syscall.SIGCONT)
			p.Alone(t, 500*time.Millisecond, "b")
		})
	}
}
