package programs

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/kit/watch"
	"understudy/supervisor/testbed/must"
)

// Both addresses of a service move with it, are never on two hosts, and clients that were told of the old one find the new one.
func TestAServicesAddressesMoveWithIt(t *testing.T) {
	n := count.Add(1)
	s := newSet(t, fmt.Sprint("addresses-", n), "ip", "/usr/sbin/nginx")
	client := s.Lab.Host(t, "client")
	four, six := freeAddress(s.a, n), fmt.Sprintf("fd77::%d", 200+n)
	for i, h := range []*kit.Host{s.a, s.b, client} {
		out, err := h.Command("ip", "addr", "add", fmt.Sprintf("fd77::%d/64", i+1), "dev", "eth0", "nodad").CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	for _, h := range []*kit.Host{s.a, s.b} {
		dir := kit.Open(t, t.TempDir())
		conf := writeNginx(t, dir, "[::]:8080 ipv6only=off", "return 200 "+h.Name)
		s.files[h.Name] = filepath.Join(dir, h.Name+".yaml")
		must.OK(t, os.WriteFile(s.files[h.Name], fmt.Appendf(nil, `node: %s
zookeeper: {servers: [%s], root: %s, lease: %v}
services:
  %s:
    command: [/usr/sbin/nginx, -c, %s, -g, "daemon off;"]
    address: [%s, "%s"]
    restart: {delay: 100ms}
    ready: {tcp: "127.0.0.1:8080"}
    stop_timeout: 1s
    grace_delay: %v
`, h.Name, strings.Join(s.Servers, ", "), s.root, session/2, s.service, conf, four, six, grace), 0o644))
	}
	watchBearers(t, four, s.a, s.b)
	watchBearers(t, six, s.a, s.b)
	active := s.start(t, s.a)
	s.role(t, s.a, "active")
	standby := s.start(t, s.b)
	s.role(t, s.b, "standby")
	visitors := map[string]*watch.Visitor{"v4": watch.NewVisitor(t, "http://"+four+":8080/", client), "v6": watch.NewVisitor(t, "http://["+six+"]:8080/", client)}
	within := func(most time.Duration, what string, h *kit.Host) {
		t.Helper()
		for name, v := range visitors {
			gap := v.Served(t, h)
			t.Logf("%s, %s: a visitor was without an answer for %v", what, name, gap)
			if gap > most+kit.Stall {
				t.Errorf("%s, %s: a visitor was without an answer for %v: more than %v", what, name, gap, most+kit.Stall)
			}
		}
	}
	within(time.Second, "start", s.a)
	for _, addr := range []string{four + "/32", six + "/128"} { // one process keeps both
		if out, err := s.a.Command("ip", "addr", "del", addr, "dev", "eth0").CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		kit.Until(t, soon, addr+" is set again", func() bool {
			out, err := s.a.Command("ip", "addr", "show", "dev", "eth0").CombinedOutput()
			return err == nil && strings.Contains(string(out), " "+addr+" ")
		})
	}
	within(time.Second, "removed by hand", s.a)
	s.order(t, "switchover", s.service, "--to", "b")
	within(time.Second, "switchover", s.b)
	s.order(t, "switchover", s.service, "--to", "a")
	within(time.Second, "switchover back", s.a)
	active.Kill9() // and no supervisor is started there: its guardians remove the addresses
	within(time.Second, "supervisor killed", s.b)
	s.start(t, s.a)
	s.role(t, s.a, "standby")
	standby.Signal(syscall.SIGSTOP)
	within(2*session+grace, "supervisor frozen", s.a)
	standby.Signal(syscall.SIGCONT)
	s.role(t, s.b, "standby")
}
