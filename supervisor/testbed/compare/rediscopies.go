package main

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"understudy/supervisor/testbed/kit"
)

// redisConf is Debian's, of which a copy needs what differs among the hosts of one machine.
func redisConf(tb testing.TB, w *trio, h *kit.Host, more ...string) string {
	dir := w.dirs[h.Name]
	lines := append([]string{
		"include /etc/redis/redis.conf", "bind 0.0.0.0", "protected-mode no", "daemonize no", "supervised no",
		"dir " + dir, "logfile " + dir + "/log", "pidfile " + dir + "/pid",
	}, more...)
	return w.conf(tb, h, "redis.conf", strings.Join(append(lines, ""), "\n"))
}

func redisUnderstudy(tb testing.TB, stage *kit.Stage) *trio {
	w := newTrio(tb, stage.Lab, redis)
	return nodes(tb, w, stage, "redis", example(tb, "redis-replicated.yaml"), func(h *kit.Host) []string {
		return []string{"/etc/redis/redis.conf", redisConf(tb, w, h), "/var/lib/redis", w.dirs[h.Name], "nofile: 65536", "nofile: 1024", // which no container refuses
			"    env_file: /etc/understudy/redis.env\n", ""} // the others have no password either
	})
}

func redisSentinel(tb testing.TB, stage *kit.Stage) *trio {
	w := newTrio(tb, stage.Lab, redis)
	sentinels := map[*kit.Host]*kit.Supervisor{}
	first := w.hosts[0].Addr
	for _, h := range w.hosts {
		more := []string{"appendonly yes", "min-replicas-to-write 1", "repl-diskless-sync-delay 0"} // the last is in our example, too
		if h.Addr != first {
			more = append(more, "replicaof "+first+" 6379")
		}
		unit(tb, h, "0.1", as("redis", "/usr/bin/redis-server", redisConf(tb, w, h, more...))...)
		sentinel := w.conf(tb, h, "sentinel.conf", fmt.Sprintf("bind 0.0.0.0\nprotected-mode no\nport 26379\ndir %s\nsentinel monitor copies %s 6379 2\n"+
			"sentinel down-after-milliseconds copies 5000\nsentinel failover-timeout copies 60000\nsentinel parallel-syncs copies 1\n", w.dirs[h.Name], first))
		sentinels[h] = unit(tb, h, "0.1", as("redis", "/usr/bin/redis-sentinel", sentinel)...)
	}
	ask := func(h *kit.Host, words ...string) string { // what one says that does not answer is nothing
		out, _ := exec.Command("timeout", append([]string{"10", "redis-cli", "-h", h.Addr, "-p", "26379", "sentinel"}, words...)...).Output()
		return string(out)
	}
	w.process = func(tb testing.TB, h *kit.Host) int { return mainOf(tb, sentinels[h]) }
	w.switchover = func(tb testing.TB, from *kit.Host) {
		if said := ask(from, "failover", "copies"); !strings.HasPrefix(said, "OK") {
			tb.Fatalf("sentinel failover: %s", said)
		}
	}
	w.ready = func(p *kit.Host) bool {
		for _, h := range w.hosts {
			if !strings.HasPrefix(ask(h, "get-master-addr-by-name", "copies"), p.Addr+"\n") || !strings.HasPrefix(ask(h, "ckquorum", "copies"), "OK 3 usable") {
				return false
			}
			if said := ask(h, "replicas", "copies"); strings.Count(said, "\nflags\nslave\n") != 2 || strings.Contains(said, "s_down") {
				return false
			}
		}
		return true
	}
	return w.begin(tb)
}
