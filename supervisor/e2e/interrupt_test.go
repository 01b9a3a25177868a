package e2e

import (
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"understudy/election"
	"understudy/election/zktest"
	"understudy/supervisor/e2e/kit"
)

// moments numbers what is said to ZooKeeper in a switchover: all requests of the operator's command, and what the two nodes
// write. At one of them something happens, and before that is over the request goes no further.
type moments struct {
	mu   sync.Mutex // guards what follows
	seen []string
	at   int // 0: nothing happens
	deed func()
}

func (m *moments) judge(who string, all bool) func(kit.Request) kit.Fate {
	return func(r kit.Request) kit.Fate {
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.deed == nil || r.Heartbeat() || !all && !r.Write() {
			return kit.Pass
		}
		if m.seen = append(m.seen, fmt.Sprint(who, ": ", r)); len(m.seen) == m.at {
			m.deed()
		}
		return kit.Pass
	}
}

func (m *moments) arm(at int, deed func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.at, m.deed = at, deed
}

// disarm tells how many moments there were, and what the one was at which something happened.
func (m *moments) disarm() (n int, what string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.deed = nil
	if m.at > 0 && m.at <= len(m.seen) {
		what = m.seen[m.at-1]
	}
	return len(m.seen), what
}

// handover is a switchover from a to b under way.
type handover struct {
	*play
	a, b *kit.Supervisor
	op   *kit.Supervisor // the operator's command
}

// begin starts a pair and then a switchover, in which something happens at one moment.
func begin(t *testing.T, s *kit.Stage, at int, deed func(h *handover)) (*handover, *moments) {
	t.Helper()
	h, m := &handover{play: brief(t, s)}, &moments{}
	direct := h.Options.ZK
	through := func(who string, all bool) []string {
		proxies, addrs := h.Lab.Proxies(t, direct)
		for _, p := range proxies {
			p.Judge(m.judge(who, all))
		}
		return addrs
	}
	h.Options.ZK = through("a", false)
	h.a, _ = h.Active(t, h.Lab.Machine(t, "a"))
	h.Options.ZK = through("b", false)
	h.b = h.Standby(t, h.Lab.Machine(t, "b"))
	h.recorded(t, h.Runs()[0])
	begun := make(chan struct{})
	m.arm(at, func() {
		<-begun
		deed(h)
	})
	h.op = h.Lab.Machine(t, "op").Understudy(t, "switchover", h.Options.Service, "--to", "b", "--timeout", "1m",
		"--zk", strings.Join(through("op", true), ","), "--root", h.Options.Root)
	close(begun)
	return h, m
}

// settled waits until the service runs on one node, which has the lock, and no order is pending.
func (h *handover) settled(t *testing.T, limit time.Duration) {
	t.Helper()
	one := func() bool {
		lock, ok := h.Lock(h.Options.Service)
		running := h.Running()
		return ok && len(running) == 1 && running[0].Node == lock.Node && running[0].Token == lock.Czxid
	}
	quiet := func() bool {
		data, _, err := h.Conn().Get(h.Path("services", h.Options.Service, "control"))
		return err == nil && election.ParseControl(data).Switchover == nil
	}
	var since time.Time // since when it has been so
	kit.Until(t, limit, "one runs for a while, has the lock, and no order is pending", func() bool {
		if !one() || !quiet() {
			since = time.Time{}
		} else if since.IsZero() {
			since = time.Now()
		}
		return !since.IsZero() && time.Since(since) > 300*time.Millisecond
	})
}

// Whoever is interrupted or dies at whatever moment of a switchover: the service ends up running once, and never twice.
func TestASwitchoverMayBreakOffAtAnyMoment(t *testing.T) {
	t.Parallel()
	stage(t)
	strokes := []struct {
		name  string
		every int // how many moments further the next one is
		deed  func(h *handover)
		after func(t *testing.T, h *handover)
	}{
		{"Ctrl-C", 3, func(h *handover) { h.op.Signal(syscall.SIGINT) }, func(t *testing.T, h *handover) {
			code, said := h.op.ExitCode(t, soon), h.op.Log()
			if code != 0 && (code != 1 || strings.Count(said, "understudy: ") != 1 || !strings.Contains(said, "interrupted")) {
				t.Errorf("the command ended with %d:\n%s", code, said)
			}
		}},
		{"the operator's machine dies", 8, func(h *handover) { h.op.Signal(syscall.SIGKILL) }, nil},
		{"the active node's supervisor dies", 8, func(h *handover) { h.a.Signal(syscall.SIGKILL) }, nil},
		{"the target's supervisor dies", 8, func(h *handover) { h.b.Signal(syscall.SIGKILL) }, nil},
	}
	n := 0
	t.Run("undisturbed", func(t *testing.T) {
		h, m := begin(t, stage(t), 0, nil)
		if code := h.op.ExitCode(t, soon); code != 0 {
			t.Fatalf("the command ended with %d:\n%s", code, h.op.Log())
		}
		h.settled(t, soon)
		n, _ = m.disarm()
	})
	if n < 10 {
		t.Fatalf("only %d moments", n)
	}
	for _, s := range strokes {
		for at := 1; at <= n; at += s.every {
			t.Run(fmt.Sprintf("%s at moment %d of %d", s.name, at, n), func(t *testing.T) {
				t.Parallel()
				h, m := begin(t, stage(t), at, s.deed)
				<-h.op.Ended()
				h.settled(t, soon)
				_, what := m.disarm()
				t.Logf("%s; running on %s", what, h.Running()[0].Node)
				if s.after != nil {
					s.after(t, h)
				}
			})
		}
	}
}

// The same when ZooKeeper's leader dies.
func TestASwitchoverOutlivesTheLeader(t *testing.T) {
	t.Parallel()
	s := kit.NewStage(t, 3, zktest.Config{})
	for at := 1; at <= 34; at += 11 {
		t.Run(fmt.Sprint("at moment ", at), func(t *testing.T) {
			leader := s.ZK.Leader()
			h, m := begin(t, s, at, func(*handover) { _ = s.ZK.Kill(leader) })
			<-h.op.Ended()
			h.settled(t, soon)
			n, what := m.disarm()
			t.Logf("%s, of %d moments; running on %s", what, n, h.Running()[0].Node)
			if code := h.op.ExitCode(t, soon); code != 0 {
				t.Errorf("the command ended with %d:\n%s", code, h.op.Log())
			}
			if what != "" {
				must(t, s.ZK.StartServer(leader))
				s.Ready(t)
			}
		})
	}
}
