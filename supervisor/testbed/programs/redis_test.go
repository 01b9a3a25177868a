package programs

import (
	"os"
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

func TestNothingThatRedisAcknowledgedIsLost(t *testing.T) {
	s := newSet(t, "redis", "redis-server", "redis-cli")
	dir, _, _ := kit.Share(t, "redis")
	conf := filepath.Join(filepath.Dir(dir), "redis.conf")
	lines := []string{"include /etc/redis/redis.conf", "bind 0.0.0.0", "protected-mode no", "dir " + dir, "appendfsync always",
		"logfile " + dir + "/log", "pidfile " + dir + "/pid", ""}
	must.OK(t, os.WriteFile(conf, []byte(strings.Join(lines, "\n")), 0o644))
	for _, h := range []*kit.Host{s.a, s.b} {
		s.example(t, h, "redis.yaml", "/etc/redis/redis.conf", conf, "/var/lib/redis", dir)
	}
	failOver(t, s, watch.DialRedis, ":6379", func() []int { return kit.Processes("redis-server", dir) })
}

// failOver has a program's service fail in every way, while a client writes.
func failOver(t *testing.T, s *set, dial func(string) (watch.Store, error), port string, running func() []int) {
	t.Helper()
	a, b := s.a.Addr+port, s.b.Addr+port
	first := s.start(t, s.a)
	s.role(t, s.a, "active")
	second := s.start(t, s.b)
	s.role(t, s.b, "standby")
	l := watch.NewLedger(t, dial, a, b)
	l.Served(t, a)
	then := func(what, addr string, limit time.Duration) {
		t.Helper()
		gap := l.Served(t, addr)
		t.Logf("%s: no write was acknowledged for %v", what, gap)
		if gap > limit {
			t.Errorf("%s: no write was acknowledged for %v: more than %v", what, gap, limit)
		}
		l.Check(t, addr)
		if n := len(running()); n != 1 {
			t.Errorf("%s: %d of them run", what, n)
		}
	}
	first.Stop(t)
	then("supervisor stopped", b, handover)

	first = s.start(t, s.a)
	s.role(t, s.a, "standby")
	second.Kill9()
	then("supervisor killed", a, handover)

	s.start(t, s.b)
	s.role(t, s.b, "standby")
	was := running()
	kit.Signal(syscall.SIGKILL, was...)
	kit.Until(t, soon, "another one runs", func() bool { now := running(); return len(now) == 1 && !slices.Equal(now, was) })
	then("program killed", a, time.Second+start) // it is started again here, after a delay

	// The client goes on reaching it, for as long as it lives.
	first.Host.CutFrom(t, s.Addrs()...)
	then("host cut off from ZooKeeper", b, takeover)
	first.Host.Heal(t)
	s.role(t, s.a, "standby")
	then("host back", b, handover)
}
