package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/must"
)

func TestOrdersThatMakeNoSenseAreRefused(t *testing.T) {
	p := newPlay(t, stage(t))
	a, b, op := p.Lab.Machine(t, "a"), p.Lab.Machine(t, "b"), p.Lab.Host(t, "op")
	p.FromFile(t, a, p.Config(t, a, "", kit.Command(p.Child())))
	run := p.On(t, soon, "a", 0)
	p.Role(t, "a", "active")
	for _, c := range []struct{ words, says string }{
		{"", "no other node has it"}, {"--to a", "active already"}, {"--to nowhere", `no node "nowhere"; there is: a`},
	} {
		said := p.refusal(t, op, append([]string{"switchover", p.Options.Service}, strings.Fields(c.words)...)...)
		if !strings.Contains(said, c.says) {
			t.Errorf("%q: %q", c.words, said)
		}
	}
	p.FromFile(t, b, p.Config(t, b, "", kit.Command(p.Child()), "precheck: {exec: [/bin/false], interval: 1s}"))
	kit.Until(t, soon, "b is unfit", func() bool { m, _ := p.Member(p.Options.Service, "b"); return m.Health == "unfit" })
	if said := p.refusal(t, op, "switchover", p.Options.Service, "--to", "b"); !strings.Contains(said, "b is unfit, precheck: exit code 1") {
		t.Error(said)
	}
	p.order(t, op, "pause", p.Options.Service)
	if said := p.refusal(t, op, "switchover", p.Options.Service); !strings.Contains(said, "understudy resume") {
		t.Error(said)
	}
	p.Untouched(t, run)
}

func TestRestartAndReloadReachTheChildWhereItIs(t *testing.T) {
	p, d := newPlay(t, stage(t)), newDiary(t)
	op := p.Lab.Host(t, "op")
	script := "trap \"echo reload >> " + string(d) + "\" HUP; trap \"exit\" TERM; echo start $UNDERSTUDY_TOKEN >> " + string(d) + "; while :; do sleep 0.02; done"
	p.serveAlone(t, "command: [sh, -c, '"+script+"']")
	kit.Until(t, soon, "it starts", func() bool { return strings.HasPrefix(d.text(), "start_") })
	first := d.text()
	p.order(t, op, "reload", p.Options.Service)
	d.until(t, first+" reload")
	p.order(t, op, "restart", p.Options.Service)
	d.until(t, first+" reload "+first)
	p.order(t, op, "reload", p.Options.Service)
	d.until(t, first+" reload "+first+" reload")
}

// A file that is broken ends many a program at its reload signal.
func TestAReloadThatFailsItsCheckSendsNoSignal(t *testing.T) {
	p, d, broken := newPlay(t, stage(t)), newDiary(t), filepath.Join(t.TempDir(), "broken")
	op := p.Lab.Host(t, "op")
	script := "trap \"echo reload >> " + string(d) + "\" HUP; trap \"exit\" TERM; echo start >> " + string(d) + "; while :; do sleep 0.02; done"
	s := p.serveAlone(t, "command: [sh, -c, '"+script+"']", "reload_check: [sh, -c, 'test ! -e "+broken+" || { echo line 7 is broken; exit 3; }']")
	d.until(t, "start")
	must.OK(t, os.WriteFile(broken, nil, 0o600))
	if said := p.refusal(t, op, "reload", p.Options.Service); !strings.Contains(said, "reload_check") || !strings.Contains(said, "line 7 is broken") {
		t.Error(said)
	}
	if !s.Says("the reload check fails, so the program is not told to reload") {
		t.Error(s.Log())
	}
	must.OK(t, os.Remove(broken))
	p.order(t, op, "reload", p.Options.Service)
	d.until(t, "start reload")
}

// Where a service is warm no more, its old program is not started once more, to stand by: it would run beside the new one of another node.
func TestAProgramThatIsWarmNoMoreStandsByNoMore(t *testing.T) {
	p, d := newPlay(t, stage(t)), newDiary(t)
	a := p.Lab.Machine(t, "a")
	script := func(name string) string {
		return "command: [sh, -c, 'trap \"\" USR1; echo " + name + " >> " + string(d) + "; while :; do sleep 0.02; done']"
	}
	path := p.Config(t, a, "", script("warm"), "warm: {promote: {signal: USR1}}", "stop_timeout: 100ms",
		"ready: {exec: [test, -s, "+string(d)+"]}") // the signal kills a shell that has not come to its trap
	s := p.FromFile(t, a, path)
	p.Role(t, "a", "active")
	d.until(t, "warm")
	plain := p.Config(t, a, "", script("plain"))
	must.OK(t, os.Rename(plain, path))
	kit.Until(t, soon, "the new one runs", func() bool { return strings.HasSuffix(d.text(), "plain") })
	if said, log := d.text(), s.Log(); said != "warm plain" || strings.Count(log, "program started") != 2 {
		t.Errorf("%s\n%s", said, log)
	}
}
