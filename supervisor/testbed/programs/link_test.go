package programs

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/kit/watch"
	"understudy/supervisor/testbed/must"
)

// withoutLink bounds the outage that a host's own link makes: a second until it counts, and a switchover.
const withoutLink = 3 * time.Second

// A host that loses the device of its address, and still reaches ZooKeeper over another one, gives the service to a node that has one. Where
// none has, it stays. A standby without its link does not take it.
func TestAServiceLeavesAHostWithoutALink(t *testing.T) {
	n := count.Add(1)
	s := newSet(t, fmt.Sprint("link-", n), "ip", "/usr/sbin/nginx")
	client := s.Lab.Host(t, "client")
	vip := freeAddress(s.a, n)
	s.linked(t, vip)
	watchBearers(t, vip, s.a, s.b)
	s.start(t, s.a)
	s.role(t, s.a, "active")
	standby := s.start(t, s.b)
	s.role(t, s.b, "standby")
	v := watch.NewVisitor(t, "http://"+vip+":8080/", client)
	v.Served(t, s.a)
	served := func(what string, h *kit.Host) {
		t.Helper()
		gap := v.Served(t, h)
		t.Logf("%s: a visitor was without an answer for %v", what, gap)
		if gap > withoutLink+kit.Stall {
			t.Errorf("%s: a visitor was without an answer for %v: more than %v", what, gap, withoutLink+kit.Stall)
		}
	}
	says := func(h *kit.Host, health, why string) {
		t.Helper()
		s.says(t, h, health, why)
	}

	s.a.Cut(t)
	served("own link lost", s.b)
	says(s.a, "unfit", "eth0 is down, or has no carrier")

	// No other node is fit: the service stays, says why, and goes on when the link is back.
	s.b.Cut(t)
	says(s.b, "failing", "eth0 is down, or has no carrier")
	s.role(t, s.b, "active")
	s.b.Heal(t)
	says(s.b, "ok", "")
	v.Served(t, s.b)

	// Where both lose it at once, as with a switch, neither takes it from the other.
	s.a.Heal(t)
	says(s.a, "ok", "")
	s.role(t, s.a, "standby")
	lock, _ := s.Lock(s.service)
	stays := func() int { return strings.Count(standby.Log(), "has no link, and it stays here") }
	before := stays()
	s.a.Cut(t)
	s.b.Cut(t)
	kit.Until(t, soon, "b stays", func() bool { return stays() > before })
	s.b.Heal(t)
	says(s.b, "ok", "")
	if now, _ := s.Lock(s.service); now.Czxid != lock.Czxid {
		t.Errorf("the lock was %+v, and is %+v", lock, now)
	}

	s.a.Heal(t)
	says(s.a, "ok", "")
	s.a.Cut(t)
	kit.Until(t, withoutLink, "a standby without its link is unfit", func() bool {
		m, ok := s.Member(s.service, "a")
		return ok && m.Health == "unfit"
	})
	s.a.Heal(t)
	says(s.a, "ok", "")
	s.role(t, s.a, "standby")
	s.b.DeleteLink(t)
	served("device deleted", s.a)
	standby.Stop(t)
}

// linked writes the configs of two hosts that reach ZooKeeper over a device of its own.
func (s *set) linked(t *testing.T, vip string) {
	t.Helper()
	for _, h := range s.hosts() {
		h.SecondLink(t, s.Addrs()...)
		dir := kit.Open(t, t.TempDir())
		conf := writeNginx(t, dir, "8080", "return 200 "+h.Name)
		s.files[h.Name] = filepath.Join(dir, h.Name+".yaml")
		must.OK(t, os.WriteFile(s.files[h.Name], fmt.Appendf(nil, `node: %s
zookeeper: {servers: [%s], root: %s, lease: %v}
services:
  %s:
    command: [/usr/sbin/nginx, -c, %s, -g, "daemon off;"]
    address: {ip: %s, device: eth0}
    restart: {delay: 100ms, rejoin_after: 1s}
    ready: {tcp: "127.0.0.1:8080"}
    stop_timeout: 1s
`, h.Name, strings.Join(s.Servers, ", "), s.root, session/2, s.service, conf, vip), 0o644))
	}
}

func (s *set) says(t *testing.T, h *kit.Host, health, why string) {
	t.Helper()
	kit.Until(t, soon, h.Name+" is "+health+": "+why, func() bool {
		m, ok := s.Member(s.service, h.Name)
		return ok && m.Health == health && strings.Contains(m.Why, why)
	})
}

// A host on which an address cannot be set leaves the service to another one at once, and status says why.
func TestAnAddressThatIsInUseIsLeftToAnotherHost(t *testing.T) {
	n := count.Add(1)
	s := newSet(t, fmt.Sprint("used-", n), "ip", "/usr/sbin/nginx")
	vip := freeAddress(s.a, n)
	s.linked(t, vip)
	other := s.Lab.Host(t, "other")
	if out, err := other.Command("ip", "addr", "add", vip+"/32", "dev", "eth0").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	s.start(t, s.a)
	s.says(t, s.a, "failed", vip+": "+vip+" is in use by ")
	if out, err := other.Command("ip", "addr", "del", vip+"/32", "dev", "eth0").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	s.says(t, s.a, "ok", "")
}
