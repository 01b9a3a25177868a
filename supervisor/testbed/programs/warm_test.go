package programs

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/kit/watch"
	"understudy/supervisor/testbed/must"
)

// loads is how long the programs of docs/warm.md take to start here.
const loads = 5 * time.Second

// standing is a recipe whose program is a copy of an example's, another one for each host.
type standing struct {
	*set
	v      *watch.Visitor
	binary string // that runs the example's program
	dirs   map[*kit.Host]string
	sups   map[*kit.Host]*kit.Supervisor
}

func newStanding(t *testing.T, name string, takes time.Duration, swaps ...string) *standing {
	t.Helper()
	example := strings.TrimSuffix(name, "-cold")
	binary, ending := "python3", ".py"
	if example == "warm-java" {
		binary, ending = "java", ".java"
	}
	s, vip := recipe(t, name, "ip", "/usr/bin/"+binary, "ss")
	w := &standing{set: s, binary: binary, dirs: map[*kit.Host]string{}, sups: map[*kit.Host]*kit.Supervisor{}}
	script := example + ending
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "examples", script))
	must.OK(t, err)
	for _, h := range s.hosts() {
		h.PowerOn(t)
		w.dirs[h] = kit.Open(t, t.TempDir())
		must.OK(t, os.WriteFile(filepath.Join(w.dirs[h], script), text, 0o644))
		was, dir := "  billing:", "/srv/billing"
		if example == "warm-signal" {
			was, dir = "  worker:", "/srv/worker"
		}
		more := append([]string{was, "  " + s.service + ":", dir, w.dirs[h], "192.0.2.10", vip, "    user: nobody\n", fmt.Sprintf("    user: nobody\n    working_dir: %s\n    env: {LOADS_FOR: %g}\n", w.dirs[h], takes.Seconds())}, swaps...)
		s.example(t, h, example+".yaml", more...)
	}
	watchBearers(t, vip, s.a, s.b)
	w.v = watch.NewVisitor(t, "http://"+vip+":8080/", s.Lab.Host(t, "client"))
	for _, h := range s.hosts() {
		w.sups[h] = s.start(t, h)
		if h == s.a {
			s.role(t, h, "active")
			w.v.Served(t, h)
		}
	}
	s.role(t, s.b, "standby")
	return w
}

// programs are the pids of the program on some hosts.
func (w *standing) programs(hosts ...*kit.Host) (pids []int) {
	for _, h := range hosts {
		pids = append(pids, kit.Processes(w.binary, w.dirs[h])...)
	}
	return pids
}

// crash kills the program on a host.
func (w *standing) crash(t *testing.T, h *kit.Host) {
	t.Helper()
	pids := w.programs(h)
	if len(pids) != 1 {
		t.Fatalf("%d programs run on %s", len(pids), h.Name)
	}
	kit.Signal(syscall.SIGKILL, pids...)
}

// memory is what the program on a host has in memory, as "ps" says it.
func (w *standing) memory(t *testing.T, h *kit.Host) string {
	t.Helper()
	pids := w.programs(h)
	if len(pids) == 0 {
		return "none"
	}
	kib, err := exec.Command("ps", "-o", "rss=", "-p", fmt.Sprint(pids[0])).Output()
	must.OK(t, err)
	return strings.TrimSpace(string(kib)) + " KiB"
}

// A switchover, the death of the program, of its supervisor and of its host cost little where another program is there already, however long it
// takes to start. Beside it stands what they cost where none is, and where the program needs no time.
func TestAWarmProgramIsThereBeforeItIsNeeded(t *testing.T) {
	cold := []string{"      promote: {http: \"POST http://127.0.0.1:8080/activate\"}\n      demote: {http: \"POST http://127.0.0.1:8080/idle\"}\n", "", "    warm:\n", "",
		"      follower: {http: \"http://127.0.0.1:8080/healthz\"}       # while it stands by\n", ""}
	for _, c := range []struct {
		name, example string
		takes         time.Duration
		swaps         []string
	}{
		{"HTTP", "warm-http", loads, nil}, {"signal", "warm-signal", loads, nil}, {"Java", "warm-java", loads, nil},
		{"cold", "warm-http-cold", loads, cold}, {"at-once", "warm-http-cold", 0, cold},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newStanding(t, c.example, c.takes, c.swaps...)
			warm := c.swaps == nil
			before := w.programs(w.a, w.b)
			w.v.Longest()
			w.order(t, "switchover", w.service, "--to", "b")
			switched := w.v.Served(t, w.b)
			w.role(t, w.a, "standby")
			if demoted := slices.Equal(before, w.programs(w.a, w.b)); demoted != (warm && c.example != "warm-signal") {
				t.Errorf("demoted %v: the programs were %v, and are %v", demoted, before, w.programs(w.a, w.b))
			}
			w.v.Longest()
			w.crash(t, w.b)
			next, other := w.b, w.a
			if warm {
				next, other = w.a, w.b
			}
			crashed := w.v.Served(t, next)
			w.role(t, next, "active")
			w.role(t, other, "standby")
			w.v.Longest()
			w.sups[next].Kill9()
			killed := w.v.Served(t, other)
			w.sups[next] = w.start(t, next)
			w.role(t, next, "standby")
			w.role(t, other, "active")
			held := w.memory(t, next)
			w.v.Longest()
			other.PowerOff(t)
			lost := w.v.Served(t, next)
			t.Logf("%s: switchover %v, program killed %v, supervisor killed %v, host lost %v, memory of the standby %s",
				c.name, switched, crashed, killed, lost, held)
			for what, gap := range map[string]time.Duration{"switchover": switched, "program": crashed, "supervisor": killed} {
				if warm && gap > loads/2 {
					t.Errorf("%s: nobody answered for %v", what, gap)
				}
			}
		})
	}
}

// withBeside is a config of one service, whose program becomes the first of two processes. The second one only lives.
func withBeside(text, dir string) string {
	var first, rest []string
	for line := range strings.Lines(text) {
		key, _, _ := strings.Cut(strings.TrimSpace(line), ":")
		if strings.HasPrefix(line, "    "+key+":") &&
			slices.Contains([]string{"command", "user", "group", "umask", "working_dir", "env", "env_file", "limits", "stop_timeout", "ready"}, key) {
			first = append(first, "    "+line)
		} else {
			rest = append(rest, line)
		}
	}
	at := slices.IndexFunc(rest, func(line string) bool { return line == "    warm:\n" || line == "    replicated:\n" })
	several := append([]string{"    processes:\n      - name: server\n"}, first...)
	several = append(several, fmt.Sprintf("      - {name: beside, command: [sleep, infinity], working_dir: %s}\n", dir))
	return strings.Join(slices.Insert(rest, at, several...), "")
}

// Of several processes the first stands by. The others run where it is promoted, from after that until before it is demoted.
func TestOnlyTheFirstOfSeveralProcessesStandsBy(t *testing.T) {
	w := newStanding(t, "warm-http", 0)
	for _, h := range w.hosts() {
		text, err := os.ReadFile(w.files[h.Name])
		must.OK(t, err)
		must.OK(t, os.WriteFile(w.files[h.Name], []byte(withBeside(string(text), w.dirs[h])), 0o644))
	}
	only := func(h, other *kit.Host) bool {
		return len(kit.Processes("sleep", w.dirs[h])) == 1 && len(kit.Processes("sleep", w.dirs[other])) == 0 &&
			len(w.programs(h)) == 1 && len(w.programs(other)) == 1
	}
	kit.Until(t, soon, "the second process runs on the active node", func() bool { return only(w.a, w.b) || only(w.b, w.a) })
	active, other := w.a, w.b
	if !only(w.a, w.b) {
		active, other = w.b, w.a
	}
	w.role(t, active, "active")
	w.role(t, other, "standby")
	was := w.programs(w.a, w.b)
	w.order(t, "switchover", w.service)
	w.v.Served(t, other)
	w.role(t, active, "standby")
	kit.Until(t, soon, "it moves with the service", func() bool { return only(other, active) })
	if now := w.programs(w.a, w.b); !slices.Equal(was, now) {
		t.Errorf("the first ones were not left running: %v, %v", was, now)
	}
	kit.Signal(syscall.SIGKILL, kit.Processes("sleep", w.dirs[other])...)
	kit.Until(t, soon, "the other node has it once it fails", func() bool { return only(active, other) })
	w.v.Served(t, active)
}

// What is stopped runs nowhere, and what is drained not there; a changed command is in force on both nodes, and the service stays where it is.
func TestAWarmProgramStandsByOnlyWhereItMay(t *testing.T) {
	w := newStanding(t, "warm-http", 0, "interval: 2s", "interval: 300ms")
	stands := w.programs(w.b)
	if kit.Reached(3*time.Second, func() bool { return !slices.Equal(stands, w.programs(w.b)) }) {
		t.Fatal("what stands by answers 503 to those who ask it to work, and was restarted for that")
	}
	run := func(h *kit.Host) bool { return len(w.programs(h)) == 1 }
	if !run(w.a) || !run(w.b) {
		t.Fatal("it does not stand by")
	}
	w.order(t, "drain", "b")
	kit.Until(t, soon, "it is stopped where it is drained", func() bool { return !run(w.b) && run(w.a) })
	w.order(t, "undrain", "b")
	w.role(t, w.b, "standby")
	w.order(t, "stop", w.service)
	kit.Until(t, soon, "it is stopped everywhere", func() bool { return !run(w.b) && !run(w.a) })
	w.order(t, "start", w.service)
	kit.Until(t, soon, "it stands by again", func() bool { return run(w.b) && run(w.a) })
	active, other := w.a, w.b
	kit.Until(t, soon, "it is active again", func() bool {
		lock, ok := w.Lock(w.service)
		if lock.Node == "b" {
			active, other = w.b, w.a
		}
		return ok
	})
	w.role(t, active, "active")
	w.role(t, other, "standby")
	w.v.Served(t, active)
	was := w.programs(w.a, w.b)
	for _, h := range w.hosts() {
		text, err := os.ReadFile(w.files[h.Name])
		must.OK(t, err)
		must.OK(t, os.WriteFile(w.files[h.Name], []byte(strings.Replace(string(text), "LOADS_FOR: 0", "LOADS_FOR: 0.1", 1)), 0o644))
	}
	kit.Until(t, soon, "it is started again on both", func() bool {
		now := w.programs(w.a, w.b)
		return len(now) == 2 && !slices.Contains(was, now[0]) && !slices.Contains(was, now[1])
	})
	w.role(t, active, "active")
	w.v.Served(t, active)
	was = w.programs(active)
	w.order(t, "restart", w.service)
	w.v.Served(t, active)
	if now := w.programs(active); len(now) != 1 || slices.Contains(was, now[0]) {
		t.Errorf("it was not restarted where it is: %v, %v", was, now)
	}
	w.role(t, other, "standby")
	was, stands = w.programs(active), w.programs(other)
	w.order(t, "restart", w.service, "--node", other.Name)
	if now := w.programs(other); len(now) != 1 || slices.Equal(stands, now) {
		t.Errorf("what stands by was not restarted: %v, %v", stands, now)
	}
	if now := w.programs(active); !slices.Equal(was, now) {
		t.Errorf("beside it the active one was: %v, %v", was, now)
	}
	w.role(t, other, "standby")
	w.order(t, "switchover", w.service) // it was started by its term, and ceases all the same
	was = w.programs(active)
	w.v.Served(t, other)
	if now := w.programs(active); !slices.Equal(was, now) {
		t.Errorf("it was not demoted: %v, %v", was, now)
	}
}
