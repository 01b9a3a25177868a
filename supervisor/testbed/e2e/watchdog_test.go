package e2e

import (
	"strings"
	"testing"
	"time"

	"understudy/supervisor/testbed/kit"
)

// A node whose watchdog is required and is none says so, and does not become active; where it is not required, it does.
func TestWatchdogThatIsRequiredDecidesWhoStands(t *testing.T) {
	p := newPlay(t, stage(t))
	a, b := p.Lab.Machine(t, "a"), p.Lab.Machine(t, "b")
	p.FromFile(t, a, p.Config(t, a, "watchdog: {mode: required, device: /dev/null}\n", kit.Command(p.Child())))
	kit.Until(t, soon, "a says why it does not stand", func() bool {
		m, ok := p.Member(p.Options.Service, "a")
		return ok && m.Health == "unfit" && strings.Contains(m.Why, "watchdog") && strings.Contains(m.Why, "/dev/null")
	})
	kit.Throughout(t, time.Second, "nobody runs", func() bool { return len(p.Running()) == 0 })
	other := p.FromFile(t, b, p.Config(t, b, "watchdog: {mode: automatic, device: /dev/null}\n", kit.Command(p.Child())))
	p.On(t, soon, "b", 0)
	kit.Until(t, soon, "b warns", func() bool { return other.Says("no watchdog", "/dev/null") })
}
