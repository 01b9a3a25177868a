// Package e2e is the acceptance test: every promise, and every fault of the failure table, on the built binary, against
// real ZooKeeper servers, with each supervisor on a host of its own. The kit does the work; here stands what must hold.
package e2e

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"understudy/election/zktest"
	"understudy/supervisor/e2e/kit"
	"understudy/supervisor/e2e/kit/tick"
)

const (
	session = 4 * time.Second
	grace   = time.Second
	soon    = kit.Soon
)

func TestMain(m *testing.M) { program.Run(m, 6) }

var (
	program kit.Program // owns what the tests share
	shared  = sync.OnceValue(func() *kit.Stage { return kit.NewStage(&program, 3, zktest.Config{}) })
	count   atomic.Int64
)

// stage is the one of all tests that leave the servers alone.
func stage(t testing.TB) *kit.Stage {
	t.Helper()
	kit.NeedHosts(t)
	zktest.Need(t)
	kit.UnderstudyBinary(t)
	return shared()
}

// play is a kit.Play with the timeouts of the tests, checked at its end.
type play struct {
	*kit.Play
	freshTokens bool // ZooKeeper lost its data: tokens need not grow
}

// newPlay is a service of its own; the words are the child's.
func newPlay(t *testing.T, s *kit.Stage, words ...string) *play {
	t.Helper()
	t.TempDir() // goes last: the logs are in it
	o := kit.Options{Session: session, Grace: grace}
	p := &play{Play: kit.NewPlay(t, s, fmt.Sprint("s", count.Add(1)), o, words...)}
	t.Cleanup(func() { // before the accounts go, after the supervisors went
		p.CheckOverlap(t)
		if !p.freshTokens {
			p.CheckTokens(t)
		}
		if t.Failed() {
			p.Show(t)
		}
	})
	return p
}

// pair makes two hosts, and starts the active one on a and a standby on b.
func (p *play) pair(t *testing.T) (a, b *kit.Supervisor, run kit.Run) {
	t.Helper()
	return p.Pair(t, p.Lab.Host(t, "a"), p.Lab.Host(t, "b"))
}

// succeeds demands that a node's next run begins so soon after something. Time in which the machine stood still is nobody's.
func (p *play) succeeds(t *testing.T, limit time.Duration, node string, after int64, something func()) kit.Run {
	t.Helper()
	at, stood := tick.Now(), kit.Stood(t)
	something()
	next := p.On(t, limit+soon, node, after)
	took, still := time.Duration(next.First-at), stood()
	t.Logf("%s succeeded after %v", node, took)
	if took-still > limit {
		kit.Late(t, "that is more than %v, and the machine stood still for %v", limit, still)
	}
	return next
}
