// Package e2e tests what operators and strangers do, on the built binary, against real ZooKeeper servers, with each supervisor on a
// host of its own. The promises and the table of failures are tested in the package promises.
package e2e

import (
	"testing"
	"time"

	"understudy/supervisor/testbed/kit"
)

const (
	session = kit.Session
	grace   = kit.Grace
	soon    = kit.Soon

	// longGrace is longer than a test waits for anything.
	longGrace = 10 * soon
)

var suite kit.Suite

func TestMain(m *testing.M) { suite.Main(m) }

func stage(t testing.TB) *kit.Stage { t.Helper(); return suite.Stage(t) }

// play is a kit.Play with more ways to order and to ask.
type play struct{ *kit.Play }

func newPlay(t *testing.T, s *kit.Stage, words ...string) *play {
	t.Helper()
	return &play{suite.Play(t, s, words...)}
}

// brief is a play in which a session has to end.
func brief(t *testing.T, s *kit.Stage, words ...string) *play {
	t.Helper()
	p := newPlay(t, s, words...)
	p.Options.Session = session
	return p
}

// fleet is a kit.Fleet with more to ask for.
type fleet struct {
	*kit.Fleet
	p *play
}

func newFleet(t *testing.T, n int, every time.Duration) *fleet {
	t.Helper()
	p := newPlay(t, stage(t))
	return &fleet{p.Fleet(t, n, every), p}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
