package e2e

import (
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"understudy/supervisor/e2e/kit"
)

// With nobody to give it up to, a failing program is still not started without end, and comes back after the rest.
func TestFailingProgramIsRestartedWithPatience(t *testing.T) {
	t.Parallel()
	p := newPlay(t, stage(t))
	a := p.Lab.Machine(t, "a")
	p.FromFile(t, a, p.Config(t, a, "", kit.Command(p.Child("exit=1", "after=0s")),
		"restart: {policy: on-failure, delay: 100ms, max_delay: 400ms, give_up_after: 4, within: 1m, rejoin_after: 2s}"))
	kit.Until(t, soon, "it is given up", func() bool {
		m, ok := p.Member(p.Options.Service, "a")
		return ok && m.Role == "failed"
	})
	kit.Until(t, soon, "it has rested", func() bool { return len(p.Runs()) > 4 }) // which may be over by the time that we look
	runs := p.Runs()
	for i, least := range []time.Duration{100, 200, 400} {
		if gap := kit.Gap(runs[i], runs[i+1]); gap < least*time.Millisecond*9/10 {
			t.Errorf("restart %d came after %v, not %v", i+1, gap, least*time.Millisecond)
		}
	}
	if rest := kit.Gap(runs[3], runs[4]); rest < 1900*time.Millisecond {
		t.Errorf("it rested only %v", rest)
	}
}

// An answer that is lost, when it takes back that it is preferred, ends nobody's rest: it rests on, and stands by after that.
func TestRestOutlivesALostAnswer(t *testing.T) {
	t.Parallel()
	p := newPlay(t, stage(t))
	proxies, servers := p.Lab.Proxies(t, p.Servers)
	var once atomic.Bool
	for _, proxy := range proxies {
		proxy.Judge(func(r kit.Request) kit.Fate {
			if r.Op == kit.OpDelete && strings.Contains(r.Path, "/preferred/") && once.CompareAndSwap(false, true) {
				return kit.CutBefore
			}
			return kit.Pass
		})
	}
	a := p.Lab.Machine(t, "a")
	p.Options.ZK = servers
	p.FromFile(t, a, p.Config(t, a, "", kit.Command(p.Child("exit=1", "after=0s")), "priority: 1",
		"restart: {policy: on-failure, delay: 50ms, give_up_after: 2, within: 1m, rejoin_after: 3s}"))
	kit.Until(t, soon, "the answer is lost", once.Load)
	kit.Throughout(t, 2*time.Second, "it rests", func() bool { return len(p.Runs()) == 2 })
	runs := p.Runs()
	p.Next(t, soon, runs[1].First) // and again
	if rest := kit.Gap(runs[1], p.Runs()[2]); rest < 2900*time.Millisecond {
		t.Errorf("it rested only %v", rest)
	}
}

// A child that crashes now and then is started again here, under the same lock and token.
func TestCrashedChildIsRestartedInPlace(t *testing.T) {
	t.Parallel()
	p := newPlay(t, stage(t), "children=1", "daemons=1", "every=2ms")
	p.Options.Flags = []string{"--restart", "always"}
	_, _, run := p.OnTwoHosts(t)
	p.Grown(t)
	kit.Signal(9, run.Pid)
	next := p.Next(t, soon, run.First)
	t.Logf("running again after %v", kit.Gap(p.Runs()[0], next))
	if next.Node != "a" || next.Token != run.Token {
		t.Errorf("it runs on %s with token %d; it ran on a with token %d", next.Node, next.Token, run.Token)
	}
	p.Alone(t, 300*time.Millisecond, "a")
}

func TestOnceEndsWithTheCommandsExitCode(t *testing.T) {
	t.Parallel()
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

func TestOnceThatCannotRunFails(t *testing.T) {
	t.Parallel()
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
	t.Parallel()
	p := newPlay(t, stage(t))
	p.Options.Child = p.Child("env=" + p.File("env"))
	_, run := p.Active(t, p.Lab.Machine(t, "a"))
	text, err := os.ReadFile(p.File("env"))
	must(t, err)
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
