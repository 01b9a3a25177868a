package e2e

import (
	"fmt"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"understudy/supervisor/e2e/kit"
)

// saboteur sits in every connection of one supervisor, counts what it writes, and has one write suffer.
type saboteur struct {
	proxies []*kit.Proxy

	mu     sync.Mutex // guards what follows
	armed  bool
	victim int // which write from the arming on; 0: none
	fate   kit.Fate
	writes []kit.Request // since the arming
}

func newSaboteur(t *testing.T, p *play) (s *saboteur, servers []string) {
	t.Helper()
	s = &saboteur{}
	s.proxies, servers = p.Lab.Proxies(t, p.Servers)
	for _, proxy := range s.proxies {
		proxy.Judge(s.judge)
	}
	return s, servers
}

// arm has the n-th write from now on suffer a fate.
func (s *saboteur) arm(n int, fate kit.Fate) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.armed, s.victim, s.fate, s.writes = true, n, fate, nil
}

func (s *saboteur) judge(r kit.Request) kit.Fate {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.armed || r.Heartbeat() || !r.Write() {
		return kit.Pass
	}
	s.writes = append(s.writes, r)
	if len(s.writes) == s.victim {
		return s.fate
	}
	return kit.Pass
}

// struck is the write that suffered; ok is false when it never came to that.
func (s *saboteur) struck() (r kit.Request, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.victim == 0 || len(s.writes) < s.victim {
		return r, false
	}
	return s.writes[s.victim-1], true
}

func (s *saboteur) written() []kit.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.writes)
}

var fates = []kit.Fate{kit.CutBefore, kit.CutAfter, kit.DropReply, kit.HoldForever}

// ordeal plays a scene once undisturbed, to learn how many writes there are, and then once for each write and each fate.
func ordeal(t *testing.T, scene func(t *testing.T, n int, fate kit.Fate) []kit.Request) {
	var writes []kit.Request
	t.Run("undisturbed", func(t *testing.T) { writes = scene(t, 0, kit.Pass) })
	if len(writes) == 0 {
		t.Fatal("nothing was written")
	}
	for i, w := range writes {
		for _, fate := range fates {
			t.Run(fmt.Sprintf("write %d of %d, %v: %v", i+1, len(writes), w, fate), func(t *testing.T) {
				t.Parallel()
				scene(t, i+1, fate)
			})
		}
	}
}

// Whatever happens to one write of a supervisor's life, from its start to its end: there is one child, then the other's.
func TestNoLostWriteOfTheActiveBreaksTheElection(t *testing.T) {
	t.Parallel()
	stage(t)
	ordeal(t, func(t *testing.T, n int, fate kit.Fate) []kit.Request {
		p := brief(t, stage(t))
		s, servers := newSaboteur(t, p)
		direct := p.Options.ZK
		p.Options.ZK = servers
		s.arm(n, fate)
		a, run := p.Active(t, p.Lab.Machine(t, "a"))
		p.Options.ZK = direct
		p.Standby(t, p.Lab.Machine(t, "b"))
		p.Alone(t, 100*time.Millisecond, "a")
		p.Succeeds(t, takeover, "b", run.First, func() { a.Signal(syscall.SIGTERM) })
		if code := a.ExitCode(t, soon); code != 0 {
			t.Errorf("a ended with %d", code)
		}
		return p.verdict(t, s, n, "b")
	})
}

// The same for a standby whose turn comes.
func TestNoLostWriteOfTheSuccessorBreaksTheElection(t *testing.T) {
	t.Parallel()
	stage(t)
	ordeal(t, func(t *testing.T, n int, fate kit.Fate) []kit.Request {
		p := brief(t, stage(t))
		a, run := p.Active(t, p.Lab.Machine(t, "a"))
		s, servers := newSaboteur(t, p)
		p.Options.ZK = servers
		p.Standby(t, p.Lab.Machine(t, "b"))
		s.arm(n, fate)
		a.Stop(t)
		p.Succeeds(t, takeover, "b", run.First, func() {})
		return p.verdict(t, s, n, "b")
	})
}

// The same for a successor that has to fence.
func TestNoLostWriteOfAFencingSuccessorBreaksTheElection(t *testing.T) {
	t.Parallel()
	stage(t)
	ordeal(t, func(t *testing.T, n int, fate kit.Fate) []kit.Request {
		p := brief(t, stage(t))
		a, run := p.Active(t, p.Lab.Machine(t, "a"))
		s, servers := newSaboteur(t, p)
		p.Options.ZK = servers
		p.Standby(t, p.Lab.Machine(t, "b"))
		s.arm(n, fate)
		p.Succeeds(t, session+takeover, "b", run.First, func() {
			kit.KillAtOnce(append(append(a.TwoGuardians(t), a.Pid), p.Processes()...)...)
		})
		writes := p.verdict(t, s, n, "b")
		for len(writes) > 0 && writes[len(writes)-1].Op != kit.OpMulti {
			writes = writes[:len(writes)-1] // no different from any successor's
		}
		return writes
	})
}

// The same for the guardian that gives back what its dead supervisor held.
func TestNoLostWriteOfAGuardianBreaksTheElection(t *testing.T) {
	t.Parallel()
	stage(t)
	ordeal(t, func(t *testing.T, n int, fate kit.Fate) []kit.Request {
		p := brief(t, stage(t))
		s, servers := newSaboteur(t, p)
		direct := p.Options.ZK
		p.Options.ZK = servers
		a, run := p.Active(t, p.Lab.Machine(t, "a"))
		p.Options.ZK = direct
		p.Standby(t, p.Lab.Machine(t, "b"))
		s.arm(n, fate)
		p.Succeeds(t, takeover, "b", run.First, a.Kill9)
		return p.verdict(t, s, n, "b")
	})
}

// verdict waits a little and looks: the node's child alone runs, and lock and breadcrumb are that node's.
func (p *play) verdict(t *testing.T, s *saboteur, n int, node string) []kit.Request {
	t.Helper()
	p.Alone(t, 500*time.Millisecond, node)
	if r, ok := s.struck(); n > 0 && !ok {
		t.Logf("there was no write %d this time", n)
	} else if n > 0 {
		t.Logf("struck: %v", r)
	}
	lock, locked := p.Lock(p.Options.Service)
	crumb, marked := p.BreadCrumb(p.Options.Service)
	if !locked || lock.Node != node || !marked || crumb.Node != node {
		t.Errorf("lock %v of %q, breadcrumb %v of %q", locked, lock.Node, marked, crumb.Node)
	}
	if run := p.Running(); len(run) == 1 && lock.Czxid != run[0].Token {
		t.Errorf("token %d, but the lock's czxid is %d", run[0].Token, lock.Czxid)
	}
	return s.written()
}
