package e2e

import (
	"strings"
	"testing"
	"time"

	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/kit/tick"
)

// elections runs f for both kinds of election.
func elections(t *testing.T, f func(t *testing.T, order string)) {
	for _, order := range []string{"race", "queue"} {
		t.Run(order, func(t *testing.T) { f(t, "election: "+order) })
	}
}

func TestNobodyIsPromotedWhilePaused(t *testing.T) {
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
