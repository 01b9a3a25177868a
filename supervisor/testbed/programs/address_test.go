package programs

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/kit/watch"
	"understudy/supervisor/testbed/must"
)

// watchBearers demands that two hosts never have an address at once.
func watchBearers(t *testing.T, addr string, hosts ...*kit.Host) *watch.Bearers {
	t.Helper()
	w := watch.NewBearers(t, addr, hosts...)
	t.Cleanup(func() {
		both, looks := w.Both()
		if both.Times > 0 {
			t.Errorf("both hosts had the address %d times, for %v, first at %v", both.Times, both.Long, both.First)
		}
		if looks < 500 {
			t.Errorf("only %d looks were taken", looks)
		}
	})
	return w
}

// moving is unit.yaml's service on two hosts, of which a is preferred, seen by a visitor and by who watches the address.
type moving struct {
	*set
	*watch.Visitor
	*watch.Bearers
	vip  string
	dirs map[string]string // what a host's web server shows
}

// move starts unit.yaml with some web server in it.
func move(t *testing.T, needs string, web func(h *kit.Host, dir string) string) (m *moving, active *kit.Supervisor) {
	t.Helper()
	// What is to be undone is noted in /run, which the hosts of a lab share: each test's service has a name of its own.
	n := count.Add(1)
	m = &moving{set: newSet(t, fmt.Sprint("vip-and-web-", n), "ip", needs), dirs: map[string]string{}}
	vip := freeAddress(m.a, n)
	m.vip = vip
	for _, h := range []*kit.Host{m.a, m.b} {
		dir := filepath.Join(kit.Open(t, t.TempDir()), h.Name)
		must.OK(t, os.Mkdir(dir, 0o755))
		must.OK(t, os.WriteFile(filepath.Join(dir, "index.html"), []byte(h.Name), 0o644))
		m.dirs[h.Name] = dir
		priority := map[string]string{"a": "1", "b": "0"}[h.Name]
		m.example(t, h, "unit.yaml", `[python3, -m, http.server, --bind, 192.0.2.10, "8080"]`, web(h, dir), "192.0.2.10", vip, "vip-and-web:", m.service+":", "working_dir: /srv", "working_dir: "+dir,
			"restart: {policy: always}", "restart: {policy: always, delay: 100ms}\n    failback: true\n    priority: "+priority,
			"interval: 5s, timeout: 2s", "interval: 500ms, timeout: 500ms", "stop_timeout: 5s", "stop_timeout: 1s")
	}
	m.Bearers = watchBearers(t, vip, m.a, m.b)
	active = m.start(t, m.a)
	m.role(t, m.a, "active")
	m.start(t, m.b)
	m.role(t, m.b, "standby")
	m.Visitor = watch.NewVisitor(t, "http://"+vip+":8080/", nil)
	m.Served(t, m.a)
	return m, active
}

// then waits until a host serves, and demands that it alone has the address.
func (m *moving) then(t *testing.T, what string, h *kit.Host, limit time.Duration) {
	t.Helper()
	gap := m.Served(t, h)
	t.Logf("%s: a visitor was without an answer for %v", what, gap)
	if gap > limit {
		t.Errorf("%s: a visitor was without an answer for %v: more than %v", what, gap, limit)
	}
}

// python is Debian's, whatever else comes first in PATH.
const python = "/usr/bin/python3"

func httpServer(*kit.Host, string) string {
	return "[" + python + `, -m, http.server, --bind, 192.0.2.10, "8080"]`
}

func TestAnAddressMovesWithItsWebServer(t *testing.T) {
	m, active := move(t, python, httpServer)
	active.Stop(t)
	m.then(t, "supervisor stopped", m.b, handover)
	if m.Has(0) {
		t.Error("what is stopped has kept the address")
	}

	active = m.start(t, m.a)
	m.then(t, "preferred host back", m.a, handover)

	// A program that hangs is found by its health check, and started again here, or on the other host.
	hung := kit.Processes("python3", m.dirs["a"])
	kit.Signal(syscall.SIGSTOP, hung...)
	m.then(t, "web server hangs", m.a, 4*time.Second+start)
	if len(hung) != 1 || kit.Alive(hung[0]) {
		t.Errorf("the web server that hung is not gone: %v", hung)
	}

	// The lease ends on a, which undoes what it did, before b may begin: it waits for undo_timeout.
	active.Host.CutFrom(t, m.Addrs()...)
	m.then(t, "host cut off from ZooKeeper", m.b, takeover+11*time.Second)
	active.Host.Heal(t)
	m.then(t, "preferred host healed", m.a, handover)

	// While a network is away, its switches and hosts may forget who has the address. It is announced when ZooKeeper answers again.
	vip := m.vip
	m.misled(t, vip)
	m.reset(t, active.Host)
	took := kit.Until(t, soon, "the address is announced after a break of the connection to ZooKeeper", func() bool { return !misled(t, vip) })
	t.Logf("announced %v after the break", took)
	if took > 10*time.Second { // after 15 s or more the kernel asks by itself
		t.Error("that is too late")
	}
	m.then(t, "neighbours misled", m.a, soon)
}

const nobodys = "02:00:00:00:77:99"

// misled reports whether this host looks for an address at a MAC that nobody has.
func misled(t *testing.T, addr string) bool {
	t.Helper()
	said, err := exec.Command("ip", "neigh", "show", addr).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	return strings.Contains(string(said), nobodys)
}

// misled makes that so, once the announcements of the start are over.
func (m *moving) misled(t *testing.T, addr string) {
	t.Helper()
	said, err := exec.Command("ip", "neigh", "show", addr).CombinedOutput()
	words := strings.Fields(string(said)) // ADDR dev DEVICE ...
	if err != nil || len(words) < 3 {
		t.Fatalf("%v: %s", err, said)
	}
	kit.Until(t, soon, "the first announcements are over", func() bool {
		if said, err := exec.Command("ip", "neigh", "replace", addr, "lladdr", nobodys, "dev", words[2], "nud", "reachable").CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, said)
		}
		for end := time.Now().Add(2200 * time.Millisecond); time.Now().Before(end); time.Sleep(50 * time.Millisecond) { // nothing else shows that none comes
			if !misled(t, addr) {
				return false
			}
		}
		return true
	})
}

// reset breaks a host's connections to ZooKeeper once.
func (m *moving) reset(t *testing.T, h *kit.Host) {
	t.Helper()
	rules := "table inet break {\nchain in {\ntype filter hook input priority 0;\n"
	for _, addr := range m.Addrs() {
		rules += " ip saddr " + addr + " meta l4proto tcp counter reject with tcp reset\n"
	}
	nft(t, h, rules+"}\n}\n")
	kit.Until(t, soon, "an answer of ZooKeeper's is refused", func() bool {
		said, err := h.Command("nft", "list", "table", "inet", "break").CombinedOutput()
		must.OK(t, err)
		return strings.Count(string(said), "packets 0 ") < len(m.Addrs())
	})
	nft(t, h, "delete table inet break\n")
}

// nft changes the firewall of a host.
func nft(t *testing.T, h *kit.Host, script string) {
	t.Helper()
	cmd := h.Command("nft", "-f", "-")
	cmd.Stdin = strings.NewReader(script)
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
}

// freeAddress is one that no host has, in the network of this one.
func freeAddress(h *kit.Host, n int64) string {
	octets := strings.Split(h.Addr, ".")
	return strings.Join(append(octets[:2], "200", fmt.Sprint(n)), ".")
}
