package e2e

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/kit/tick"
	"understudy/supervisor/testbed/zktest"
)

// Servers that are restarted one by one with shorter ticks, or another maxSessionTimeout, grant sessions less.
func TestServersThatGrantLess(t *testing.T) {
	s := kit.NewStage(t, 3, zktest.Config{})
	t.Run("the lease is the shorter one at once", func(t *testing.T) { grantedLess(t, s) })
	t.Run("the child does not notice", func(t *testing.T) { livedWith(t, s) })
}

const asked, granted = 10 * time.Second, 2 * time.Second

// grant has all servers grant so much, from their next starts on.
func grant(t *testing.T, s *kit.Stage, longest time.Duration) {
	t.Helper()
	for i := range s.Servers {
		must(t, s.ZK.Reconfigure(i, fmt.Sprintf("maxSessionTimeout=%d", longest.Milliseconds())))
	}
}

// told tells whether a node says that it was granted so much.
func told(t *testing.T, s *kit.Stage, p *play, node string, much time.Duration) func() bool {
	look := kit.Look(t, s.Servers, p.Options.Root)
	return func() bool {
		data, _, err := look.Conn().Get(p.Options.Root + "/nodes/" + node)
		return err == nil && strings.Contains(string(data), fmt.Sprintf(`"session_timeout_ms":%d,`, much.Milliseconds()))
	}
}

// P1, P3: with its supervisor frozen right after, the child is dead before another runs.
func grantedLess(t *testing.T, s *kit.Stage) {
	p := brief(t, s, "term=ignore", "every=2ms")
	p.Options.Session, p.Options.Grace = asked, 100*time.Millisecond
	a, _, _ := p.OnTwoHosts(t)
	grant(t, s, granted)
	shorter := func() bool { return a.Says("shorter timeout", "now=2s") }
	for i := 0; !shorter(); i++ { // until it is the server that a is connected to, and another has been restarted before
		must(t, s.ZK.Restart(i%3))
		for beat, since := time.NewTicker(asked/1000), time.Now(); !shorter() && time.Since(since) < asked/4; {
			<-beat.C
		}
		if !shorter() {
			s.Ready(t)
		}
	}
	kit.Signal(syscall.SIGSTOP, a.Pid)
	at := tick.Now()
	defer kit.Signal(syscall.SIGCONT, a.Pid)
	next := p.Next(t, 2*soon, at)
	p.Options.Session = granted  // whose leases a standstill ends
	p.Alone(t, asked, next.Node) // and at the end it is looked whether two ever ran
	t.Logf("frozen: its child was dead after %v, the next one runs after %v", time.Duration(p.Runs()[0].Last-at), time.Duration(next.First-at))
}

// P7.
func livedWith(t *testing.T, s *kit.Stage) {
	const asked, less = 20 * time.Second, 12 * time.Second // whose leases outlast the choice of a new leader on a busy machine
	grant(t, s, asked)
	roll := func() {
		for i := range s.Servers {
			must(t, s.ZK.Restart(i))
			s.Ready(t)
		}
	}
	roll()
	p := newPlay(t, s)
	p.Options.Session = asked
	_, _, run := p.OnTwoHosts(t)
	grant(t, s, less)
	roll()
	kit.Until(t, soon, "nodes/a tells what was granted", told(t, s, p, "a", less))
	p.Alone(t, less, "a")
	p.Untouched(t, run)
}
