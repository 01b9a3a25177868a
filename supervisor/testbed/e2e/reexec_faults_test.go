package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/must"
)

// pretends makes a binary that promises to go on, and does something else then.
func pretends(t *testing.T, instead string) string {
	t.Helper()
	return kit.Script(t, fmt.Sprintf(`if [ "$1" = goes-on ]; then exec %s "$@"; fi`, kit.UnderstudyBinary(t))+"\n"+instead)
}

// becomes has a supervisor become what is installed, and returns in the very moment in which it is about to.
func becomes(t *testing.T, s *kit.Supervisor) {
	t.Helper()
	times := func() int { return strings.Count(s.Log(), "handing over to the installed version") }
	for before, asked := times(), time.Now().Add(-time.Minute); times() == before; {
		if time.Since(asked) > 3*time.Second { // a busy machine may have it refused
			s.Signal(syscall.SIGUSR2)
			asked = time.Now()
		}
		if !s.Running() {
			t.Fatal("it has ended")
		}
	}
}

// Without ZooKeeper nothing is handed over: the lease that is left is needed.
func TestAnUpgradeIsRefusedWhileZooKeeperDoesNotAnswer(t *testing.T) {
	p := brief(t, stage(t))
	b := kit.Install(t)
	p.Options.Binary = string(b)
	p.Options.Session = 20 * time.Second // a lease of 11 s, of which more than half has to be over, and enough be left
	one := p.Lab.Host(t, "a")
	a, run := p.Active(t, one)
	one.CutFrom(t, p.Addrs()...)
	<-time.After(6 * time.Second)
	a.Signal(syscall.SIGUSR2)
	kit.Until(t, soon, "it is refused", func() bool { return a.Says("the upgrade is cancelled", "acknowledged nothing") })
	one.Heal(t)
	kit.Throughout(t, session, "the child runs", func() bool { return len(p.Running()) == 1 })
	p.Untouched(t, run)
	b.Upgraded(t, a)
	p.Untouched(t, run)
}

// Output that goes into a file, and a socket for notifications, are handed over as well: no line is lost, and nothing fails.
func TestOutputAndNotificationsAreHandedOver(t *testing.T) {
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
	if strings.Count(s.Log(), "program started") != 1 {
		t.Error("it was started anew")
	}
}

// A config that was changed for the new version is taken up by it: what runs is started anew where it was.
func TestTheNextImageTakesTheChangedConfigUp(t *testing.T) {
	p := newPlay(t, stage(t))
	b := kit.Install(t)
	one := p.Lab.Machine(t, "a")
	file := p.Config(t, one, "", kit.Command(p.Child()), "env: {SOME: thing}")
	s := one.UnderstudyAt(t, string(b), "run", "--config", file)
	p.Started = append(p.Started, s)
	run := p.On(t, soon, "a", 0)
	text, err := os.ReadFile(file)
	must.OK(t, err)
	b.Replace(t, pretends(t, fmt.Sprintf("sed -i s/thing/else/ %s; exec %s \"$@\"", file, kit.UnderstudyBinary(t))))
	must.OK(t, os.WriteFile(file, text, 0o600))
	becomes(t, s)
	again := p.On(t, soon, "a", run.First)
	if again.Token != run.Token {
		t.Errorf("the token was %d, and is %d", run.Token, again.Token)
	}
}

// The agent answers for a child that was handed over.
func TestAnAgentAnswersForWhatWasHandedOver(t *testing.T) {
	p := brief(t, stage(t), "daemons=1")
	p.Options.Grace = longGrace
	a, b, run := p.agents(t, sharedSecret, sharedSecret, "fencing: {methods: [{agent: {}}], on_failure: refuse}")
	for n := range 2 {
		said := func() int {
			return strings.Count(a.Log(), "the upgrade is cancelled") + strings.Count(a.Log(), "does not switch to")
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
	p.On(t, 2*soon, "b", run.First)
	p.fencedBy(t, b.Host, "agent")
	p.Alone(t, 500*time.Millisecond, "b")
}
