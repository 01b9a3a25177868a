package soak

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"understudy/packaging/need"
	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/must"
	"understudy/supervisor/testbed/zktest"
)

const (
	session = 2 * time.Second
	grace   = 1200 * time.Millisecond // longer than a lease: a session that is closed from outside leaves one behind
)

// enduring supervisors live from the first failover to the last, mortal is ended and started anew.
var enduring = []string{"a", "b"}

const mortal = "c"

var (
	mu     sync.Mutex // guards shared
	shared *kit.Stage
	count  int
)

func stage(t *testing.T) *kit.Stage {
	t.Helper()
	kit.NeedHosts(t)
	need.These(t, "cgroup")
	zktest.Need(t)
	mu.Lock()
	defer mu.Unlock()
	count++
	if shared == nil {
		shared = kit.NewStage(&program, 3, zktest.Config{})
	}
	return shared
}

// soak is three supervisors with two services, one for each order of candidates.
type soak struct {
	*testing.T
	*kit.Cluster
	stage    *kit.Stage
	mark     string // in the environment of all processes, and in the name of each node
	tmp      string
	conf     map[string]string
	nodes    map[string]*kit.Supervisor
	services []*ledger
	dice     *rand.Rand
	bag      []kind // faults to come

	turn   int                      // whose it is among the services
	done   int                      // failovers
	kinds  map[kind][]time.Duration // how long nobody ran, from the fault
	moved  int                      // to another node
	census census
}

func newSoak(t *testing.T, changes []change) *soak {
	t.Helper()
	stage := stage(t)
	s := &soak{
		T: t, stage: stage, mark: fmt.Sprintf("soak%d-%d", os.Getpid(), count), nodes: map[string]*kit.Supervisor{},
		conf: map[string]string{}, dice: rand.New(rand.NewPCG(*seed, 0)), kinds: map[kind][]time.Duration{},
	}
	s.census = census{soak: s, samples: map[string][]int64{}}
	s.Cluster = kit.Look(t, stage.Servers, "/"+s.mark)
	s.services = []*ledger{
		{Accounts: kit.NewAccounts(t, stage.Lab), name: "race"},
		{Accounts: kit.NewAccounts(t, stage.Lab), name: "queue"},
	}
	exe := build(t, changes)
	s.tmp = t.TempDir()
	t.Setenv("UNDERSTUDY_BINARY", exe)
	t.Setenv("UNDERSTUDY_SOAK", s.mark)
	t.Setenv("TMPDIR", s.tmp)
	for _, name := range append(slices.Clone(enduring), mortal) {
		s.conf[name] = s.config(name)
		s.start(name)
		if name == enduring[0] {
			for _, l := range s.services {
				l.running(t, "it runs", func(kit.Run) bool { return true })
			}
		}
	}
	t.Cleanup(func() {
		if t.Failed() {
			for name, v := range s.nodes {
				t.Logf("story: log of %s:\n%s", name, tail(v.Log()))
			}
		}
	})
	return s
}

func tail(log string) string { return log[max(0, len(log)-8<<10):] }

func (s *soak) node(name string) string { return s.mark + "-" + name }

func (s *soak) config(name string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "node: %s\nzookeeper: {servers: [%s], root: /%s, lease: %v}\nservices:\n",
		s.node(name), strings.Join(s.stage.Servers, ", "), s.mark, session/2)
	for _, l := range s.services {
		fmt.Fprintf(&b, "  %s:\n    election: %s\n    contain: cgroup\n    grace_delay: %v\n    command: [%s]\n", l.name, l.name, grace,
			strings.Join(l.Child("every=2ms", "daemons=1"), ", "))
		b.WriteString("    restart: {policy: on-failure, delay: 5ms, max_delay: 5ms, give_up_after: 2, within: 1m, rejoin_after: 50ms}\n")
	}
	path := filepath.Join(s.TempDir(), name+".yaml")
	must.OK(s, os.WriteFile(path, []byte(b.String()), 0o600))
	return path
}

func (s *soak) start(name string) {
	s.Helper()
	h := s.stage.Lab.Here(s.node(name))
	s.nodes[name] = h.Understudy(s, "run", "--config", s.conf[name])
}

// on is the short name of the node that a run is on.
func (s *soak) on(r kit.Run) string { return strings.TrimPrefix(r.Node, s.mark+"-") }

// checkRuns looks at every run of the services: P1, and the tokens.
func (s *soak) checkRuns() {
	s.Helper()
	for _, l := range s.services {
		l.tidy(s.T)
		runs := l.all()
		for _, o := range kit.Overlaps(runs) {
			s.Errorf("%s: two children at once: %v", l.name, o)
		}
		for _, fault := range kit.TokenFaults(runs) {
			s.Errorf("%s: fencing token: %s", l.name, fault)
		}
	}
}
