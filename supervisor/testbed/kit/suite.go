package kit

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"understudy/supervisor/testbed/kit/tick"
	"understudy/supervisor/testbed/zktest"
)

// Timeouts. Session is of tests in which one has to end, Calm of all others: a machine may stand still for ten seconds, and no lease ends.
const (
	Session = 4 * time.Second
	Calm    = 20 * time.Second
	Grace   = time.Second

	// Stall is what a bound on real time adds to a promise's formula, for a machine that stands still.
	Stall = 5 * time.Second
)

// Suite is what the tests of a package share: three ZooKeeper servers, which are started when the first test wants them, and three
// that are stopped by tests.
type Suite struct {
	program Program
	whole   shared
	broken  shared
	plays   atomic.Int64
}

type shared struct {
	once  sync.Once
	stage *Stage
}

// Main is the package's TestMain.
func (s *Suite) Main(m *testing.M) { s.program.Run(m) }

// Stage is the one of all tests that leave the servers alone.
func (s *Suite) Stage(tb testing.TB) *Stage { tb.Helper(); return s.get(tb, &s.whole) }

// Breakable is the one of tests that stop servers, and leave them running.
func (s *Suite) Breakable(tb testing.TB) *Stage { tb.Helper(); return s.get(tb, &s.broken) }

func (s *Suite) get(tb testing.TB, one *shared) *Stage {
	tb.Helper()
	NeedHosts(tb)
	zktest.Need(tb)
	UnderstudyBinary(tb)
	one.once.Do(func() { one.stage = NewStage(&s.program, 3, zktest.Config{}) })
	return one.stage
}

// Play is a service of its own, checked at its end; the words are the child's.
func (s *Suite) Play(tb testing.TB, stage *Stage, words ...string) *Play {
	tb.Helper()
	tb.TempDir() // goes last: the logs are in it
	p := NewPlay(tb, stage, fmt.Sprint("s", s.plays.Add(1)), Options{Session: Calm, Grace: Grace}, words...)
	tb.Cleanup(func() { // before the accounts go, after the supervisors went
		p.CheckOverlap(tb)
		if !p.FreshTokens {
			p.CheckTokens(tb)
		}
		if tb.Failed() {
			p.Show(tb)
		}
	})
	return p
}

// OnTwoHosts makes two hosts, and starts the active one on a and a standby on b.
func (p *Play) OnTwoHosts(tb testing.TB) (a, b *Supervisor, run Run) {
	tb.Helper()
	return p.Pair(tb, p.Lab.Host(tb, "a"), p.Lab.Host(tb, "b"))
}

// Succeeds demands that a node's next run begins so soon after something.
func (p *Play) Succeeds(tb testing.TB, limit time.Duration, node string, after int64, something func()) Run {
	tb.Helper()
	at := tick.Now()
	something()
	next := p.On(tb, limit+Soon, node, after)
	took := time.Duration(next.First - at)
	tb.Logf("%s succeeded after %v", node, took)
	if took > limit {
		tb.Errorf("that is more than %v", limit)
	}
	return next
}

// Grown waits until the newest run has all the processes that the child's words want.
func (p *Play) Grown(tb testing.TB) {
	tb.Helper()
	words := map[string]int{}
	for _, w := range p.Options.Child {
		switch w {
		case "children=100":
			words["child"], words["grandchild"] = 100, 100
		case "children=5":
			words["child"], words["grandchild"] = 5, 5
		case "daemons=5":
			words["daemon"] = 5
		case "daemons=2":
			words["daemon"] = 2
		case "chains=20":
			words["chain19"] = 1
		}
	}
	Until(tb, Soon, "the family is complete", func() bool {
		runs := p.Runs()
		for kind, n := range words {
			if runs[len(runs)-1].Procs[kind] < n {
				return false
			}
		}
		return true
	})
}
