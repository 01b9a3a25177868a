package e2e

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/kit/tick"
)

var inParts = regexp.MustCompile(`Done: \S+ is active on \S+, after \S+ \(gap \d\S+, of which startup \d\S+\)\.`)

func TestSwitchoverGoesBackAndForth(t *testing.T) {
	elections(t, func(t *testing.T, order string) {
		p := brief(t, stage(t))
		hosts := []*kit.Host{p.Lab.Machine(t, "a"), p.Lab.Machine(t, "b"), p.Lab.Machine(t, "c")}
		op := p.Lab.Host(t, "op")
		for _, h := range hosts {
			p.FromFile(t, h, p.Config(t, h, "", kit.Command(p.Child()), order))
			kit.Until(t, soon, h.Name+" stands", func() bool { _, ok := p.Member(p.Options.Service, h.Name); return ok })
		}
		p.Next(t, soon, 0)
		kit.Until(t, soon, "one is active", func() bool { l, ok := p.Lock(p.Options.Service); return ok && l.Node != "" })
		var gaps []time.Duration
		told := 0
		for range 3 {
			for _, to := range hosts {
				active, _ := p.Lock(p.Options.Service)
				if active.Node == to.Name {
					continue
				}
				p.Stands(t, to)
				at := tick.Now()
				r := op.Ask(t, p.asking("switchover", p.Options.Service, "--to", to.Name)...)
				if r.Code != 0 {
					t.Fatalf("%+v", r)
				}
				if inParts.MatchString(r.Out) {
					told++
				}
				run := p.On(t, soon, to.Name, at)
				for _, r := range p.Runs() {
					if r.Node == active.Node && r.Last < run.First && r.Last > at {
						gaps = append(gaps, kit.Gap(r, run))
					}
				}
			}
		}
		if len(gaps) < 5 {
			t.Fatalf("only %d gaps", len(gaps))
		}
		if told == 0 { // a busy machine may have written the end too late
			t.Error("no switchover says how long nothing ran")
		}
		t.Logf("gaps of %d switchovers: median %v, longest %v", len(gaps), kit.Median(gaps), kit.Quantile(gaps, 1))
	})
}

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
