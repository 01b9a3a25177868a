package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/must"
)

func TestOnceEndsWithTheCommandsExitCode(t *testing.T) {
	for name, c := range map[string]struct {
		words []string
		want  int
	}{
		"success": {[]string{"exit=0", "after=50ms"}, 0},
		"failure": {[]string{"exit=7", "after=50ms"}, 7},
		"killed":  {[]string{"crash=50ms"}, 128 + 9},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t, stage(t), c.words...)
			p.Options.Flags = []string{"--once"}
			p.Options.Child = p.Child(c.words...)
			a, _ := p.Start(t, p.Lab.Machine(t, "a")), p.Start(t, p.Lab.Machine(t, "b"))
			if code := a.ExitCode(t, soon); code != c.want {
				t.Errorf("exit code %d, not %d", code, c.want)
			}
			if code := p.Started[1].ExitCode(t, soon); code != c.want {
				t.Errorf("the second one's exit code is %d, not %d", code, c.want)
			}
			if runs := p.Runs(); len(runs) != 2 || runs[0].Node == runs[1].Node {
				t.Errorf("runs: %+v", runs)
			}
			p.Sync(t)
			if _, ok := p.Lock(p.Options.Service); ok || !p.NoBreadCrumb(p.Options.Service) {
				t.Error("lock or breadcrumb are still there")
			}
		})
	}
}

func TestOnceHasTheCallersStdin(t *testing.T) {
	p := newPlay(t, stage(t))
	for _, contain := range []string{"auto", "pidns"} {
		cmd := p.Lab.Machine(t, "a").Command(kit.UnderstudyBinary(t), "run", "--zk", strings.Join(p.Options.ZK, ","), "--root", p.Options.Root,
			"--service", p.Options.Service, "--contain", contain, "--once", "--", "cat")
		cmd.Stdin = strings.NewReader("said by the caller\n")
		if out, err := cmd.Output(); err != nil || string(out) != "said by the caller\n" {
			t.Errorf("%s: the command has read %q: %v", contain, out, err)
		}
	}
}

func TestWaitEndsWithACodeOfItsOwn(t *testing.T) {
	p := newPlay(t, stage(t))
	a, run := p.Active(t, p.Lab.Machine(t, "a"))
	host := p.Lab.Machine(t, "b")
	for _, c := range []struct {
		flags []string
		most  time.Duration
		said  string
	}{
		{[]string{"--wait", "0", "--once"}, soon, "at the first try: it is active on a"},
		{[]string{"--wait", "0", "--election", "queue"}, soon, "at the first try: it is active on a"},
		{[]string{"--wait", "1s"}, soon, "within 1s: it is active on a"},
		{[]string{"--wait", "1s", "--node", "a"}, soon, "within 1s: the node name a is in use by another supervisor, or its previous session has not ended"},
	} {
		p.Options.Flags = c.flags
		b := p.Start(t, host)
		if code := b.ExitCode(t, c.most); code != 75 {
			t.Errorf("%v: exit code %d", c.flags, code)
		}
		if !b.Says("understudy: did not get the lock of " + p.Options.Service + " " + c.said) {
			t.Errorf("%v: it does not say who has the lock: %s", c.flags, b.Log())
		}
	}
	p.Options.Flags = []string{"--wait", "10s"}
	b := p.Start(t, host)
	p.Alone(t, time.Second, "a")
	a.Stop(t)
	p.On(t, soon, "b", run.First)
	p.Alone(t, 11*time.Second, "b") // once active, it runs on
	if !b.Running() {
		t.Error("it has ended although it was active")
	}
}

func TestOnceThatCannotRunFails(t *testing.T) {
	p := newPlay(t, stage(t))
	p.Options.Flags = []string{"--once"}
	p.Options.Child = []string{"/no/such/program"}
	a := p.Start(t, p.Lab.Machine(t, "a"))
	if code := a.ExitCode(t, soon); code == 0 || code == 2 {
		t.Errorf("exit code %d", code)
	}
	if !a.Says("/no/such/program", "no such file") {
		t.Error("the log does not say why")
	}
}

func TestChildLearnsWhoItIs(t *testing.T) {
	p := newPlay(t, stage(t))
	p.Options.Child = p.Child("env=" + p.File("env"))
	_, run := p.Active(t, p.Lab.Machine(t, "a"))
	text, err := os.ReadFile(p.File("env"))
	must.OK(t, err)
	env := "\n" + string(text) + "\n"
	for _, want := range []string{
		"UNDERSTUDY_SERVICE=" + p.Options.Service, "UNDERSTUDY_NODE=a", fmt.Sprint("UNDERSTUDY_TOKEN=", run.Token),
	} {
		if !strings.Contains(env, "\n"+want+"\n") {
			t.Errorf("the child has no %s", want)
		}
	}
	p.Sync(t)
	if lock, ok := p.Lock(p.Options.Service); !ok || lock.Czxid != run.Token {
		t.Errorf("the token %d is not the lock's czxid %d", run.Token, lock.Czxid)
	}
}
