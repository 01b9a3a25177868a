// Package e2e tests what operators and strangers do, on the built binary, against real ZooKeeper servers, with each supervisor on a
// host of its own. The promises and the table of failures are tested in the package promises.
package e2e

import (
	"encoding/json"
	"slices"
	"strings"
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

// asking is the flags that make a command speak of the play's cluster.
func (p *play) asking(words ...string) []string {
	end := len(words)
	if i := slices.Index(words, "--"); i >= 0 {
		end = i
	}
	return slices.Insert(words, end, "--zk", strings.Join(p.Options.ZK, ","), "--root", p.Options.Root)
}

// ask runs a command that looks at the play's cluster, and reads what it prints as JSON.
func (p *play) ask(t *testing.T, answer any, words ...string) kit.Result {
	t.Helper()
	result := p.Lab.Here("asker").Ask(t, p.asking(words...)...)
	if answer != nil {
		if err := json.Unmarshal([]byte(result.Out), answer); err != nil {
			t.Fatalf("%q: %v\n%+v", words, err, result)
		}
	}
	return result
}

// order gives an operator's order, from a host of its own.
func (p *play) order(t *testing.T, h *kit.Host, words ...string) {
	t.Helper()
	if r := h.Ask(t, p.asking(words...)...); r.Code != 0 {
		t.Fatalf("%v: exit code %d: %s%s", words, r.Code, r.Out, r.Err)
	}
}

// refusal gives an order that is to be refused, and returns what was said.
func (p *play) refusal(t *testing.T, h *kit.Host, words ...string) string {
	t.Helper()
	r := h.Ask(t, p.asking(words...)...)
	if r.Code != 1 || strings.Count(r.Err, "\n") != 1 {
		t.Errorf("%v: exit code %d, %q", words, r.Code, r.Err)
	}
	return r.Err
}
