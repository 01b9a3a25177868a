package programs

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"understudy/supervisor/testbed/kit"
)

// dialFrom opens connections in a host's network.
func dialFrom(h *kit.Host) func(ctx context.Context, network, addr string) (net.Conn, error) {
	type opened struct {
		net.Conn
		error
	}
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		done := make(chan opened)
		go func() {
			runtime.LockOSThread() // and the thread ends with the goroutine
			var o opened
			file, err := os.Open(h.Network())
			if err == nil {
				err = unix.Setns(int(file.Fd()), unix.CLONE_NEWNET)
				file.Close()
			}
			if o.error = err; err == nil {
				o.Conn, o.error = (&net.Dialer{}).DialContext(ctx, network, addr)
			}
			done <- o
		}()
		o := <-done
		return o.Conn, o.error
	}
}

// Both addresses of a service move with it, are never on two hosts, and clients that were told of the old one find the new one.
func TestAServicesAddressesMoveWithIt(t *testing.T) {
	n := count.Add(1)
	s := newSet(t, fmt.Sprint("addresses-", n), "ip", "/usr/sbin/nginx")
	client := s.Lab.Host(t, "client")
	four, six := s.a.Addr[:strings.LastIndex(s.a.Addr, ".")+1]+fmt.Sprint(200+n), fmt.Sprintf("fd77::%d", 200+n)
	for i, h := range []*kit.Host{s.a, s.b, client} {
		out, err := h.Command("ip", "addr", "add", fmt.Sprintf("fd77::%d/64", i+1), "dev", "eth0", "nodad").CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	for _, h := range []*kit.Host{s.a, s.b} {
		dir := open(t, t.TempDir())
		conf := writeNginx(t, dir, "[::]:8080 ipv6only=off", "return 200 "+h.Name)
		s.files[h.Name] = filepath.Join(dir, h.Name+".yaml")
		must(t, os.WriteFile(s.files[h.Name], fmt.Appendf(nil, `node: %s
zookeeper: {servers: [%s], root: %s, session_timeout: %v}
services:
  %s:
    command: [/usr/sbin/nginx, -c, %s, -g, "daemon off;"]
    address: [%s, "%s"]
    restart: {delay: 100ms}
    ready: {tcp: "127.0.0.1:8080"}
    stop_timeout: 1s
    grace_delay: %v
`, h.Name, strings.Join(s.Servers, ", "), s.root, session, s.service, conf, four, six, grace), 0o644))
	}
	watchBearers(t, four, s.a, s.b)
	watchBearers(t, six, s.a, s.b)
	active := s.start(t, s.a)
	s.role(t, s.a, "active")
	standby := s.start(t, s.b)
	s.role(t, s.b, "standby")
	visitors := map[string]*visitor{"v4": newVisitor(t, "http://"+four+":8080/", client), "v6": newVisitor(t, "http://["+six+"]:8080/", client)}
	within := func(most time.Duration, what string, h *kit.Host) {
		t.Helper()
		for name, v := range visitors {
			gap := v.served(t, h)
			t.Logf("%s, %s: a visitor was without an answer for %v", what, name, gap)
			if gap > most+kit.Stall {
				t.Errorf("%s, %s: a visitor was without an answer for %v: more than %v", what, name, gap, most+kit.Stall)
			}
		}
	}
	within(time.Second, "start", s.a)
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
