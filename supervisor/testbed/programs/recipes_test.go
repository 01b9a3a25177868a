package programs

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"understudy/packaging/need"
	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/kit/watch"
	"understudy/supervisor/testbed/must"
)

// The recipes of docs/recipes.md: each example as it stands, less its paths and addresses, moves on order and when its host stops.

// recipe is a set whose service has a name that no other test has: what is to be undone is noted in /run, which hosts share.
func recipe(t *testing.T, service string, needs ...string) (s *set, vip string) {
	t.Helper()
	n := count.Add(1)
	s = newSet(t, fmt.Sprintf("%s-%d", service, n), needs...)
	return s, freeAddress(s.a, n)
}

// hosts are the two of a set.
func (s *set) hosts() []*kit.Host { return []*kit.Host{s.a, s.b} }

// takeTurns has a run the service, then b by an order, then a because b stops.
func (s *set) takeTurns(t *testing.T, works func(on *kit.Host)) {
	t.Helper()
	s.start(t, s.a)
	s.role(t, s.a, "active")
	works(s.a)
	second := s.start(t, s.b)
	s.role(t, s.b, "standby")
	s.order(t, "switchover", s.service, "--to", "b")
	s.role(t, s.b, "active")
	works(s.b)
	s.role(t, s.a, "standby")
	second.Stop(t)
	s.role(t, s.a, "active")
	works(s.a)
}

// clientOf asks from a host's network.
func clientOf(h *kit.Host) *http.Client {
	return &http.Client{Timeout: soon, Transport: &http.Transport{DisableKeepAlives: true, DialContext: watch.DialFrom(h)}}
}

func TestHAProxyMovesWithItsAddress(t *testing.T) {
	s, vip := recipe(t, "front", "ip", "/usr/sbin/haproxy")
	conf := filepath.Join(kit.Open(t, t.TempDir()), "haproxy.cfg")
	write := func(answer string) {
		must.OK(t, os.WriteFile(conf, fmt.Appendf(nil, `defaults
	mode http
	timeout connect 1s
	timeout client 5s
	timeout server 5s
frontend front
	bind %s:80
	http-request return status 200 content-type text/plain string "%s"
`, vip, answer), 0o644))
	}
	write("$UNDERSTUDY_NODE")
	for _, h := range s.hosts() {
		s.example(t, h, "haproxy-address.yaml", "192.0.2.10", vip, "  front:", "  "+s.service+":", "/etc/haproxy/haproxy.cfg", conf)
	}
	watchBearers(t, vip, s.a, s.b)
	client := s.Lab.Host(t, "client")
	v := watch.NewVisitor(t, "http://"+vip+"/", client)
	s.takeTurns(t, func(on *kit.Host) { v.Served(t, on) })
	write("again")
	s.order(t, "reload", s.service)
	kit.Until(t, soon, "it answers by its new configuration", func() bool {
		text, err := watch.Get(t.Context(), clientOf(client), "http://"+vip+"/")
		return err == nil && text == "again"
	})
}

func TestTheAddressOfAPrometheusPairIsWhereOneIsReady(t *testing.T) {
	need.These(t, "prometheus")
	s, vip := recipe(t, "prometheus-address", "ip", "prometheus", "curl")
	conf := filepath.Join(kit.Open(t, t.TempDir()), "prometheus.yml")
	must.OK(t, os.WriteFile(conf, []byte("scrape_configs: []\n"), 0o644))
	serve := func(h *kit.Host) *exec.Cmd {
		cmd := h.Command("prometheus", "--config.file", conf, "--storage.tsdb.path", t.TempDir(), "--web.listen-address", "0.0.0.0:9090", "--log.level", "error")
		must.OK(t, cmd.Start())
		t.Cleanup(func() {
			_ = cmd.Process.Kill() // it may have been killed
			_ = cmd.Wait()
		})
		return cmd
	}
	for _, h := range s.hosts() {
		s.example(t, h, "prometheus.yaml", "192.0.2.10", vip, "  prometheus-address:", "  "+s.service+":")
	}
	watchBearers(t, vip, s.a, s.b)
	client := clientOf(s.Lab.Host(t, "client"))
	answers := func() {
		t.Helper()
		kit.Until(t, soon, "a dashboard is answered", func() bool {
			_, err := watch.Get(t.Context(), client, "http://"+vip+":9090/-/ready")
			return err == nil
		})
	}
	s.start(t, s.b)
	kit.Until(t, soon, "b, where none is ready, is not fit", func() bool {
		m, ok := s.Member(s.service, "b")
		return ok && m.Health == "unfit"
	})
	first := serve(s.a)
	s.start(t, s.a)
	s.role(t, s.a, "active")
	answers()
	serve(s.b)
	s.role(t, s.b, "standby")
	must.OK(t, first.Process.Kill())
	s.role(t, s.b, "active")
	answers()
	serve(s.a)
	s.role(t, s.a, "standby")
}

// A host whose disk is full loses the service, is not fit while it is, and is afterwards.
func TestAFullDiskMovesAService(t *testing.T) {
	s, _ := recipe(t, "uploads", "dd", "/usr/bin/python3")
	dirs := map[*kit.Host]string{}
	for _, h := range s.hosts() {
		dirs[h] = kit.Open(t, t.TempDir())
		must.OK(t, unix.Mount("disk", dirs[h], "tmpfs", 0, "size=1m"))
		t.Cleanup(func() { must.OK(t, unix.Unmount(dirs[h], unix.MNT_DETACH)) })
		s.example(t, h, "disk.yaml", "  uploads:", "  "+s.service+":", "/srv/uploads", dirs[h], "interval: 5s", "interval: 1s")
	}
	s.start(t, s.a)
	s.role(t, s.a, "active")
	s.start(t, s.b)
	s.role(t, s.b, "standby")
	full, err := os.Create(filepath.Join(dirs[s.a], "full"))
	must.OK(t, err)
	if _, err := io.CopyN(full, rand.Reader, 1<<21); !errors.Is(err, unix.ENOSPC) {
		t.Fatalf("the disk is not full: %v", err)
	}
	must.OK(t, full.Close())
	s.role(t, s.b, "active")
	kit.Until(t, soon, "a, whose disk is full, is not fit", func() bool {
		m, ok := s.Member(s.service, "a")
		return ok && (m.Health == "unfit" || m.Health == "failed")
	})
	must.OK(t, os.Remove(full.Name()))
	s.role(t, s.a, "standby")
}

func TestCeleryBeatMoves(t *testing.T) {
	need.These(t, "celery")
	s, _ := recipe(t, "celery-beat")
	app, sent := kit.Open(t, t.TempDir()), filepath.Join(kit.Open(t, t.TempDir()), "sent")
	for _, dir := range []string{sent, sent + ".control"} {
		must.OK(t, os.Mkdir(dir, 0o777))
		must.OK(t, os.Chmod(dir, 0o777)) // whatever the umask is
	}
	must.OK(t, os.WriteFile(filepath.Join(app, "app.py"), fmt.Appendf(nil, `import celery

app = celery.Celery(broker="filesystem://")
app.conf.broker_transport_options = {"data_folder_in": %[1]q, "data_folder_out": %[1]q, "control_folder": %[2]q}
app.conf.beat_schedule = {"tick": {"task": "tick", "schedule": 0.2}}
`, sent, sent+".control"), 0o644))
	for _, h := range s.hosts() {
		dir := filepath.Join(kit.Open(t, t.TempDir()), "kept")
		must.OK(t, os.Mkdir(dir, 0o777))
		must.OK(t, os.Chmod(dir, 0o777))
		s.example(t, h, "celery-beat.yaml", "  celery-beat:", "  "+s.service+":", "user: celery", "user: nobody", "/srv/app", app,
			"/var/lib/celery", dir, "[/usr/bin/celery, ", "[/usr/bin/python3, -m, celery, ")
	}
	tasks := func() int {
		names, _ := filepath.Glob(filepath.Join(sent, "*.msg"))
		return len(names)
	}
	s.takeTurns(t, func(on *kit.Host) {
		was := tasks()
		kit.Until(t, soon, "tasks are sent on "+on.Name, func() bool { return tasks() > was+2 })
		if n := len(kit.Processes("python3", app)); n != 1 {
			t.Errorf("%d of them run while %s is active", n, on.Name)
		}
	})
}

// The daemon is ZooKeeper's own server, which is Java and is there.
func TestAJavaDaemonMoves(t *testing.T) {
	s, _ := recipe(t, "billing", "/usr/bin/java")
	for _, h := range s.hosts() {
		dir := kit.Open(t, t.TempDir())
		must.OK(t, os.Chmod(dir, 0o777))
		s.example(t, h, "java.yaml", "  billing:", "  "+s.service+":", "user: billing", "user: nobody", "working_dir: /opt/billing", "working_dir: "+dir, "512m", "32m",
			"-jar, /opt/billing/billing.jar", "-Dzookeeper.admin.enableServer=false, -cp, '/usr/share/java/zookeeper.jar:/usr/share/java/slf4j-simple.jar', "+
				"org.apache.zookeeper.server.ZooKeeperServerMain, '8080', "+dir)
	}
	s.takeTurns(t, func(on *kit.Host) {
		conn, err := watch.DialFrom(on)(t.Context(), "tcp", net.JoinHostPort("127.0.0.1", "8080"))
		must.OK(t, err) // it is ready
		conn.Close()
		other := s.hosts()[map[string]int{"a": 1, "b": 0}[on.Name]]
		if conn, err := watch.DialFrom(other)(t.Context(), "tcp", net.JoinHostPort("127.0.0.1", "8080")); err == nil {
			conn.Close()
			t.Errorf("it runs on %s, too", other.Name)
		}
	})
}
