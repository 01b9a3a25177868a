package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"understudy/supervisor/e2e/kit"
	"understudy/supervisor/e2e/kit/tick"
)

// order gives an operator's order, from a host of its own.
func (p *play) order(t *testing.T, h *kit.Host, words ...string) {
	t.Helper()
	words = append(words, "--zk", strings.Join(p.Options.ZK, ","), "--root", p.Options.Root)
	if r := h.Ask(t, words...); r.Code != 0 {
		t.Fatalf("%v: exit code %d: %s%s", words, r.Code, r.Out, r.Err)
	}
}

// election is run for both kinds.
func elections(t *testing.T, f func(t *testing.T, order string)) {
	for _, order := range []string{"race", "queue"} {
		t.Run(order, func(t *testing.T) { t.Parallel(); f(t, "election: "+order) })
	}
}

func TestNobodyIsPromotedWhilePaused(t *testing.T) {
	t.Parallel()
	elections(t, func(t *testing.T, order string) {
		p := newPlay(t, stage(t))
		a, b, op := p.Lab.Machine(t, "a"), p.Lab.Machine(t, "b"), p.Lab.Host(t, "op")
		first := p.FromFile(t, a, p.Config(t, a, "", kit.Command(p.Child()), order))
		run := p.On(t, soon, "a", 0)
		p.FromFile(t, b, p.Config(t, b, "", kit.Command(p.Child()), order))
		p.Stands(t, b)
		p.order(t, op, "pause", p.Options.Service, "--reason", "moving house")
		p.Role(t, "b", "paused")
		p.Untouched(t, run) // a pause is none for what runs
		first.Kill9()
		kit.Until(t, soon, "the lock is gone", func() bool { return p.Gone("services", p.Options.Service, "ActiveStandbyElectorLock") })
		kit.Until(t, soon, "the child is dead", func() bool { return len(p.Running()) == 0 })
		kit.Throughout(t, 2*time.Second, "nobody runs", func() bool { return len(p.Running()) == 0 })
		status := op.Ask(t, "status", "--zk", strings.Join(p.Options.ZK, ","), "--root", p.Options.Root)
		if !strings.Contains(status.Out, "moving house") || !strings.Contains(status.Out, "understudy resume "+p.Options.Service) {
			t.Errorf("the status does not say why nobody runs, and what ends that:\n%s", status.Out)
		}
		at := tick.Now()
		p.order(t, op, "resume", p.Options.Service)
		next := p.On(t, soon, "b", at)
		t.Logf("b ran %v after the order", time.Duration(next.First-at))
	})
}

// A child that fails while nobody else may take it is started again where it is, also when it had been given up otherwise.
func TestAPausedServiceIsNotGivenUp(t *testing.T) {
	t.Parallel()
	p := newPlay(t, stage(t))
	a, op := p.Lab.Machine(t, "a"), p.Lab.Host(t, "op")
	p.FromFile(t, a, p.Config(t, a, "", kit.Command(p.Child("crash=300ms")), "restart: {delay: 50ms, max_delay: 100ms, give_up_after: 100, within: 1m, rejoin_after: 1m}"))
	p.On(t, soon, "a", 0)
	p.order(t, op, "pause", p.Options.Service)
	p.FromFile(t, p.Lab.Machine(t, "b"), p.Config(t, p.Lab.Machine(t, "b"), "", kit.Command(p.Child())))
	n := len(p.Runs())
	kit.Until(t, soon, "it was started again and again", func() bool { return len(p.Runs()) > n+4 })
	for _, run := range p.Runs() {
		if run.Node != "a" {
			t.Errorf("it ran on %s", run.Node)
		}
	}
}

func TestAPreferredNodeTakesTheServiceWhenItIsFree(t *testing.T) {
	t.Parallel()
	for _, order := range []string{"election: race", "election: queue"} { // one after the other, and beside nothing: it is measured
		t.Run(strings.TrimPrefix(order, "election: "), func(t *testing.T) { preferredTakes(t, order) })
	}
}

func preferredTakes(t *testing.T, order string) {
	p := newPlay(t, stage(t))
	first := p.Lab.Machine(t, "first")
	active := p.FromFile(t, first, p.Config(t, first, "", kit.Command(p.Child()), order))
	run := p.On(t, soon, "first", 0)
	for i, name := range []string{"low", "high", "mid"} {
		h := p.Lab.Machine(t, name)
		p.FromFile(t, h, p.Config(t, h, "", kit.Command(p.Child()), order, fmt.Sprintf("priority: %d", []int{0, 20, 10}[i])))
		p.Stands(t, h)
	}
	p.Untouched(t, run)                                                  // a preferred node that comes does not disturb
	p.Succeeds(t, 400*time.Millisecond, "high", run.First, active.Kill9) // others are not waited for
	p.Alone(t, time.Second, "high")
}

func TestAPreferredNodeThatIsNotFitDelaysNobody(t *testing.T) { // not parallel: it is measured
	t.Parallel()
	p := newPlay(t, stage(t))
	a, b, c := p.Lab.Machine(t, "a"), p.Lab.Machine(t, "b"), p.Lab.Machine(t, "c")
	active := p.FromFile(t, a, p.Config(t, a, "", kit.Command(p.Child())))
	run := p.On(t, soon, "a", 0)
	p.FromFile(t, b, p.Config(t, b, "", kit.Command(p.Child())))
	p.Stands(t, b)
	p.FromFile(t, c, p.Config(t, c, "", kit.Command(p.Child()), "priority: 9", "precheck: {exec: [/bin/false], interval: 1s}"))
	kit.Until(t, soon, "c says why it does not stand", func() bool {
		m, ok := p.Member(p.Options.Service, "c")
		return ok && strings.Contains(m.Why, "precheck")
	})
	p.Succeeds(t, 400*time.Millisecond, "b", run.First, active.Kill9) // who is not fit is not waited for
}

func TestAPreferredNodeThatReturnsTakesTheServiceBack(t *testing.T) {
	t.Parallel()
	elections(t, func(t *testing.T, order string) {
		p := newPlay(t, stage(t))
		a, b := p.Lab.Machine(t, "a"), p.Lab.Machine(t, "b")
		p.FromFile(t, a, p.Config(t, a, "", kit.Command(p.Child()), order, "failback: true"))
		run := p.On(t, soon, "a", 0)
		p.FromFile(t, b, p.Config(t, b, "", kit.Command(p.Child()), order, "failback: true", "priority: 1"))
		p.On(t, soon, "b", run.First)
		p.Alone(t, 3*time.Second, "b")
		p.Role(t, "a", "standby")
	})
}

func TestANodeThatIsNotEligibleNeverStands(t *testing.T) {
	t.Parallel()
	elections(t, func(t *testing.T, order string) {
		p := newPlay(t, stage(t))
		a := p.Lab.Machine(t, "a")
		p.FromFile(t, a, p.Config(t, a, "", kit.Command(p.Child()), order, "eligible: false"))
		kit.Until(t, soon, "a says why", func() bool {
			m, ok := p.Member(p.Options.Service, "a")
			return ok && strings.Contains(m.Why, "eligible")
		})
		kit.Throughout(t, time.Second, "nobody runs", func() bool { return len(p.Running()) == 0 })
	})
}

func TestAPrecheckDecidesWhoStands(t *testing.T) {
	t.Parallel()
	elections(t, func(t *testing.T, order string) {
		p := newPlay(t, stage(t))
		a, b := p.Lab.Machine(t, "a"), p.Lab.Machine(t, "b")
		fit := filepath.Join(t.TempDir(), "fit")
		check := fmt.Sprintf("precheck: {exec: [test, -e, %s], interval: 1s}", fit)
		active := p.FromFile(t, a, p.Config(t, a, "", kit.Command(p.Child()), order))
		p.On(t, soon, "a", 0)
		p.FromFile(t, b, p.Config(t, b, "", kit.Command(p.Child()), order, check))
		kit.Until(t, soon, "b says why it does not stand", func() bool {
			m, ok := p.Member(p.Options.Service, "b")
			return ok && m.Health == "unfit" && strings.Contains(m.Why, "precheck: exit code 1")
		})
		active.Kill9()
		kit.Throughout(t, 2*time.Second, "nobody runs on b", func() bool {
			for _, r := range p.Running() {
				if r.Node == "b" {
					return false
				}
			}
			return true
		})
		at := tick.Now()
		must(t, os.WriteFile(fit, nil, 0o600))
		p.On(t, soon, "b", at)
	})
}

// recorded waits until a run stands in the history.
func (p *play) recorded(t *testing.T, run kit.Run) {
	t.Helper()
	kit.Until(t, soon, "the run is in the history", func() bool {
		names, _, err := p.Conn().Children(p.Path("services", p.Options.Service, "history"))
		if err != nil || len(names) == 0 {
			return false
		}
		n, ok := p.Get("services", p.Options.Service, "history", slices.Max(names))
		return ok && n.Token == run.Token
	})
}

// Each kill moves the service; after the third within the time it stays where it is.
func TestAServiceThatMovesTooOftenStaysPut(t *testing.T) {
	t.Parallel()
	p := newPlay(t, stage(t))
	moves := "moves: {max: 2, within: 10m}"
	hosts := map[string]*kit.Host{"a": p.Lab.Machine(t, "a"), "b": p.Lab.Machine(t, "b")}
	op := p.Lab.Host(t, "op")
	nodes := map[string]*kit.Supervisor{}
	start := func(name string) {
		h := hosts[name]
		nodes[name] = p.FromFile(t, h, p.Config(t, h, "", kit.Command(p.Child()), moves))
	}
	start("a")
	run := p.On(t, soon, "a", 0)
	start("b")
	p.Stands(t, hosts["b"])
	for i := range 3 {
		here, there := run.Node, map[string]string{"a": "b", "b": "a"}[run.Node]
		p.recorded(t, run)
		nodes[here].Kill9()
		run = p.On(t, soon, there, run.First)
		t.Logf("move %d: to %s", i+1, there)
		start(here)
	}
	kit.Until(t, soon, "the pause is written", func() bool {
		n, ok := p.Get("services", p.Options.Service, "control")
		return ok && strings.Contains(n.Why, "moved 3 times")
	})
	nodes[run.Node].Kill9()
	kit.Until(t, soon, "nothing runs", func() bool { return len(p.Running()) == 0 })
	kit.Throughout(t, 2*time.Second, "it stays so", func() bool { return len(p.Running()) == 0 })
	p.order(t, op, "resume", p.Options.Service)
	p.Next(t, soon, run.Last)
}
