package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"understudy/supervisor/e2e/kit"
)

// file writes a config with the play's options and one service, whose keys come as lines, and returns its name.
func (p *play) file(t *testing.T, h *kit.Host, zookeeper string, service ...string) string {
	t.Helper()
	o := p.Options
	var b strings.Builder
	fmt.Fprintf(&b, "node: %s\nzookeeper:\n  servers: [%q]\n  root: %s\n  session_timeout: %v\n%s",
		h.Name, strings.Join(o.ZK, `", "`), o.Root, o.Session, zookeeper)
	fmt.Fprintf(&b, "services:\n  %s:\n    grace_delay: %v\n", o.Service, o.Grace)
	for _, line := range service {
		fmt.Fprintf(&b, "    %s\n", line)
	}
	text := strings.ReplaceAll(b.String(), `\"`, `"`)
	path := filepath.Join(t.TempDir(), h.Name+".yaml")
	must(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// command is a child's command line as a key of a service.
func command(words []string) string { return fmt.Sprintf("command: [%s]", strings.Join(words, ", ")) }

// fromFile starts a supervisor that is configured by a file.
func (p *play) fromFile(t *testing.T, h *kit.Host, path string) *kit.Supervisor {
	t.Helper()
	s := h.Understudy(t, "run", "--config", path)
	p.Started = append(p.Started, s)
	return s
}

const impatient = "restart: {policy: on-failure, delay: 50ms, max_delay: 200ms, give_up_after: 3, within: 1m, rejoin_after: 1m}"

// A program that cannot run here, or does not stay, is tried a few times, and then another node has its turn.
func TestProgramThatDoesNotRunIsGivenUpToTheStandby(t *testing.T) {
	noProgram := filepath.Join(t.TempDir(), "no-such-program")
	notExecutable := filepath.Join(t.TempDir(), "not-executable")
	must(t, os.WriteFile(notExecutable, []byte("#!/bin/sh\n"), 0o644))
	for name, c := range map[string]struct {
		command func(p *play) []string
		says    []string // all of them in one line of the log
		runs    int      // how often it may run before it is given up
	}{
		"missing":        {func(*play) []string { return []string{noProgram} }, []string{noProgram, "no such file"}, 0},
		"not executable": {func(*play) []string { return []string{notExecutable} }, []string{notExecutable, "not executable"}, 0},
		"exits at once":  {func(p *play) []string { return p.Child("exit=3", "after=0s") }, []string{"another node", "3 times"}, 3},
		"crash loop":     {func(p *play) []string { return p.Child("crash=100ms") }, []string{"another node", "3 times"}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlay(t, stage(t))
			a, b := p.Lab.Machine(t, "a"), p.Lab.Machine(t, "b")
			ill := p.fromFile(t, a, p.file(t, a, "", command(c.command(p)), impatient))
			kit.Until(t, soon, "the fault is told", func() bool { return ill.Says(c.says...) })
			began := time.Now()
			p.fromFile(t, b, p.file(t, b, "", command(p.Child()), impatient))
			run := p.On(t, soon, "b", 0)
			t.Logf("b runs after %v", time.Since(began))
			p.Alone(t, time.Second, "b")
			if n := len(p.Runs()) - 1; n != c.runs {
				t.Errorf("it ran %d times on a, not %d", n, c.runs)
			}
			_ = run
			kit.Until(t, soon, "a says why it does not stand", func() bool {
				m, ok := p.Member(p.Options.Service, "a")
				return ok && m.Role == "failed"
			})
			if strings.Contains(ill.Log(), "goroutine ") {
				t.Error("the log shows a stack")
			}
		})
	}
}

// With nobody to give it up to, a failing program is still not started without end, and comes back after the rest.
func TestFailingProgramIsRestartedWithPatience(t *testing.T) {
	t.Parallel()
	p := newPlay(t, stage(t))
	a := p.Lab.Machine(t, "a")
	p.fromFile(t, a, p.file(t, a, "", command(p.Child("exit=1", "after=0s")),
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
	p.fromFile(t, a, p.file(t, a, "", command(p.Child("exit=1", "after=0s")), "priority: 1",
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
	_, _, run := p.pair(t)
	p.grown(t)
	kit.Signal(9, run.Pid)
	next := p.Next(t, soon, run.First)
	t.Logf("running again after %v", kit.Gap(p.Runs()[0], next))
	if next.Node != "a" || next.Token != run.Token {
		t.Errorf("it runs on %s with token %d; it ran on a with token %d", next.Node, next.Token, run.Token)
	}
	p.Alone(t, 300*time.Millisecond, "a")
}

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
