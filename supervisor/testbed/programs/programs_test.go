// Package programs runs real programs - Redis, PostgreSQL, nginx, Python's http.server - from the shipped examples, has clients
// use them throughout every kind of failover, and demands that nothing that was acknowledged is lost, and that one of them
// runs after each.
package programs

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"understudy/packaging/need"
	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/must"
	"understudy/supervisor/testbed/zktest"
)

const (
	session = 6 * time.Second // the default: a machine that stands still for two seconds costs no lease
	grace   = time.Second
	soon    = 2 * kit.Soon // real programs take their time, most of all on a machine that is busy

	// What the README promises for the programs' hosts, and what a program takes to start.
	start    = 15 * time.Second
	handover = start
	takeover = session + 500*time.Millisecond + grace + start
)

func TestMain(m *testing.M) { program.Run(m) }

var (
	program kit.Program // owns what the tests share
	shared  = sync.OnceValue(func() *kit.Stage { return kit.NewStage(&program, 1, zktest.Config{}) })
	count   atomic.Int64
)

// set is one service on two hosts, configured by a file of the examples.
type set struct {
	*kit.Stage
	*kit.Cluster
	service string
	root    string
	a, b    *kit.Host
	files   map[string]string // config file of a node
	started []*kit.Supervisor
}

func newSet(t *testing.T, service string, needs ...string) *set {
	t.Helper()
	need.These(t, "programs")
	kit.NeedHosts(t)
	zktest.Need(t)
	for _, name := range needs {
		if _, err := exec.LookPath(name); err != nil {
			t.Fatalf("%s is missing: make test-all installs it", name)
		}
	}
	t.TempDir() // goes last: the logs are in it
	s := &set{Stage: shared(), service: service, root: fmt.Sprint("/programs-", count.Add(1)), files: map[string]string{}}
	s.Cluster = kit.Look(t, s.Servers, s.root)
	s.a, s.b = s.Lab.Host(t, "a"), s.Lab.Host(t, "b")
	t.Cleanup(func() {
		if t.Failed() {
			for _, sup := range s.started {
				t.Logf("story: log of %s:\n%s", sup.Host.Name, sup.Log())
			}
		}
	})
	return s
}

// example makes a host's config of a file of the examples. Of the pairs that follow, what is to be replaced must be there.
func (s *set) example(t *testing.T, h *kit.Host, name string, swaps ...string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "examples", name))
	must.OK(t, err)
	swaps = append(swaps, "\nservices:\n", fmt.Sprintf("\nnode: %s\ndefaults: {grace_delay: %v}\nservices:\n", h.Name, grace))
	config := string(text)
	if !mayRaise(t) {
		config = strings.NewReplacer("oom_score_adj: -", "oom_score_adj: ", "nofile: 65536", "nofile: 1024").Replace(config)
	}
	for i := 0; i < len(swaps); i += 2 {
		if !strings.Contains(config, swaps[i]) {
			t.Fatalf("the example %s does not hold %q any more:\n%s", name, swaps[i], config)
		}
		config = strings.ReplaceAll(config, swaps[i], swaps[i+1])
	}
	before, rest, ok := strings.Cut(config, "  servers: [")
	_, after, ok2 := strings.Cut(rest, "]\n")
	if !ok || !ok2 {
		t.Fatalf("the example %s names no servers", name)
	}
	after = strings.Replace(after, "  lease: 3s", "  # lease: 3s", 1)
	config = fmt.Sprintf("%s  servers: [%s]\n  root: %s\n  lease: %v\n%s", before, strings.Join(s.Servers, ", "), s.root, session/2, after)
	path := filepath.Join(kit.Open(t, t.TempDir()), h.Name+".yaml")
	must.OK(t, os.WriteFile(path, []byte(config), 0o644))
	r := h.Ask(t, "check", "--config", path)
	for line := range strings.Lines(r.Out + r.Err) {
		// Debian's package enables a unit of the same program. It runs on none of the hosts here.
		if r.Code == 0 && (!strings.Contains(line, "warning") || strings.Contains(line, ", too: systemctl disable --now ")) {
			continue
		}
		t.Fatalf("check finds fault with the example %s: exit code %d\n%s%s", name, r.Code, r.Out, r.Err)
	}
	s.files[h.Name] = path
}

// calm gives hosts' configs a session that no machine outlasts by standing still, where none has to end.
func (s *set) calm(t *testing.T) {
	t.Helper()
	for _, path := range s.files {
		text, err := os.ReadFile(path)
		must.OK(t, err)
		config := strings.Replace(string(text), fmt.Sprint("lease: ", session/2), fmt.Sprint("lease: ", kit.Calm/2), 1)
		must.OK(t, os.WriteFile(path, []byte(config), 0o644))
	}
}

// mayRaise tells whether this machine lets root raise limits. Containers often do not.
func mayRaise(t *testing.T) bool {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	must.OK(t, err)
	_, rest, _ := strings.Cut(string(status), "\nCapEff:")
	var caps uint64
	_, err = fmt.Sscanf(strings.TrimSpace(rest), "%x", &caps)
	must.OK(t, err)
	return caps&(1<<unix.CAP_SYS_RESOURCE) != 0
}

// start starts a host's supervisor.
func (s *set) start(t *testing.T, h *kit.Host) *kit.Supervisor {
	t.Helper()
	sup := h.Understudy(t, "run", "--config", s.files[h.Name])
	s.started = append(s.started, sup)
	return sup
}

// role waits until a host says that it has a role, and is well.
func (s *set) role(t *testing.T, h *kit.Host, role string) {
	t.Helper()
	var m kit.Node
	fits := func() bool {
		var ok bool
		m, ok = s.Member(s.service, h.Name)
		return ok && m.Role == role && m.Health != "starting" && m.Health != "unfit"
	}
	if !kit.Reached(soon, fits) {
		t.Fatalf("%s is not %s, but says %+v", h.Name, role, m)
	}
}

// order gives an operator's order.
func (s *set) order(t *testing.T, words ...string) {
	t.Helper()
	words = append(words, "--zk", strings.Join(s.Servers, ","), "--root", s.root)
	if r := s.a.Ask(t, words...); r.Code != 0 {
		t.Fatalf("%v: exit code %d: %s%s", words, r.Code, r.Out, r.Err)
	}
}
