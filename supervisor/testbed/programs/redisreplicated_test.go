package programs

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/kit/watch"
	"understudy/supervisor/testbed/must"
)

func redisTrio(t *testing.T, swaps ...string) *trio { return redisTrioWith(t, "", swaps...) }

// redisTrioWith has a line more in redis.conf.
func redisTrioWith(t *testing.T, line string, swaps ...string) *trio {
	r := newTrio(t, "redis", "redis", copies{
		port: ":6379", program: "redis-server", state: watch.RedisState, asker: watch.AskRedis, dial: watch.DialReplicatedRedis, promote: watch.PromoteRedis,
		swap: swapRedis,
	}, "redis-server", "redis-cli")
	for _, h := range r.hosts {
		dir := r.dirs[h.Name]
		conf := filepath.Join(filepath.Dir(dir), "redis.conf")
		lines := []string{"include /etc/redis/redis.conf", "bind 0.0.0.0", "protected-mode no", "dir " + dir, "logfile " + dir + "/log", "pidfile " + dir + "/pid",
			"requirepass \"" + watch.RedisPassword + "\"", "masterauth \"" + watch.RedisPassword + "\"", line, ""}
		must.OK(t, os.WriteFile(conf, []byte(strings.Join(lines, "\n")), 0o644))
		secret := filepath.Join(filepath.Dir(dir), "redis.env")
		must.OK(t, os.WriteFile(secret, []byte("REDISCLI_AUTH='"+watch.RedisPassword+"'\n"), 0o600))
		r.copy(t, h, "redis-replicated.yaml", append(slices.Clone(swaps), "/etc/understudy/redis.env", secret, "/etc/redis/redis.conf", conf, "/var/lib/redis", dir)...)
	}
	return r
}

func swapRedis(s watch.Store, key int, write int64) (int64, error) {
	const swap = "local was = redis.call('GET', KEYS[1]) or '0' " +
		"redis.call('SET', KEYS[1], ARGV[1] == '0' and was or ARGV[1]) return tonumber(was)"
	said, err := s.(watch.ReplicatedRedis).Held("EVAL", swap, "1", fmt.Sprint("register-", key), strconv.FormatInt(write, 10))
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(said[0], 10, 64)
}

// P1: at most one copy of Redis is promoted, and what WAIT 1 has acknowledged is kept through every kind of failover.
func TestNothingThatTwoCopiesOfRedisHaveIsLost(t *testing.T) {
	r := redisTrio(t)
	old, before, p := r.faults(t)
	if now := r.heads(old); len(before) == 0 || !slices.Equal(before, now) {
		t.Errorf("it was demoted, and its server is %v, not %v", now, before)
	}

	r.empty(t, p)
	r.failed(t, "primary emptied", p)
	p = r.primary(t)

	p.CutFrom(t, r.Addrs()...)
	r.failed(t, "host cut off from ZooKeeper", p)
	p.Heal(t)
	p = r.primary(t)
	r.reads(t, p)

	was := r.heads(p)
	r.byHand(t, r.others(p)[1]) // the primary does not notice
	if now, is := r.primary(t), r.heads(p); now != p || !slices.Equal(is, was) {
		t.Errorf("the primary was %s %v, and is %s; the former now has %v", p.Name, was, now.Name, is)
	}
	r.l.Check(t, p.Addr+":6379")

	// All nodes go, and one of those that return first has older data or none that it knows of: nobody is promoted before two have told.
	r.l.Stop()
	r.restart(t, r.hosts, r.hosts)
	p = r.primary(t)
	r.l.Check(t, p.Addr+":6379")

	// Two of three are lost: nobody is promoted, until an operator chooses the one that is left.
	for _, h := range r.hosts {
		r.sups[h.Name].Stop(t)
	}
	left := r.others(p)[0]
	r.up(t, left)
	kit.Until(t, soon, "the status says why nobody is promoted", func() bool {
		m, _ := r.Member(r.service, left.Name)
		return strings.HasPrefix(m.Why, "1 of 2 copies have reported their position")
	})
	r.order(t, "switchover", "redis", "--to", left.Name, "--force")
	for _, h := range r.others(left) {
		r.up(t, h)
	}
	if now := r.primary(t); now != left {
		t.Errorf("%s is active, not %s", now.Name, left.Name)
	}
	r.l.Check(t, left.Addr+":6379")
}

// Without positions_from all copies but one have to report, whichever nodes are away, until an operator has one of these forgotten.
func TestCopiesOfNodesThatAreAwayAreWaitedForUntilTheyAreForgotten(t *testing.T) {
	r := redisTrio(t, "      positions_from: 2 ", "      # positions_from: 2 ")
	p := r.begin(t)
	r.l.Stop()
	left, lost := r.others(p)[0], r.others(p)[1]
	kit.Until(t, soon, "the copy that will be left has all writes", func() bool { // the other follower may have acknowledged them
		missing, _, _ := r.l.Missing(t, left.Addr+r.port)
		return len(missing) == 0
	})
	for _, h := range r.hosts {
		r.sups[h.Name].Stop(t)
	}
	r.up(t, left)
	kit.Until(t, soon, "the status says for whom it waits", func() bool {
		m, _ := r.Member(r.service, left.Name)
		return strings.HasPrefix(m.Why, "1 of 2 copies have reported their position") && strings.Contains(m.Why, lost.Name+": it has reported nothing")
	})
	r.order(t, "forget", lost.Name)
	kit.Until(t, soon, "one of two is enough", func() bool {
		primary, _, err := r.state(left.Addr+r.port, "")
		return err == nil && primary
	})
	r.up(t, p)
	r.up(t, lost)
	if now := r.primary(t); now != left {
		t.Errorf("%s is active, not %s", now.Name, left.Name)
	}
	r.l.Check(t, left.Addr+r.port)
}

// An operator restarts the primary where it is, demote or not, and nothing is lost.
func TestAPrimaryOfRedisIsRestartedWhereItIs(t *testing.T) {
	r := redisTrio(t)
	p := r.begin(t)
	before := r.heads(p)
	r.order(t, "restart", r.service)
	if now := r.failed(t, "restart", nil); now != p || slices.Equal(r.heads(p), before) {
		t.Errorf("%s was the primary, and %s is; its server was %v, and is %v", p.Name, now.Name, before, r.heads(p))
	}
	f := r.others(p)[0]
	before = r.heads(f)
	r.order(t, "reload", r.service, "--node", f.Name)
	if now := r.heads(f); !slices.Equal(now, before) {
		t.Errorf("%s has reloaded, and its server was %v, and is %v", f.Name, before, now)
	}
	r.order(t, "restart", r.service, "--node", f.Name)
	if now := r.heads(f); len(now) != 1 || slices.Equal(now, before) {
		t.Errorf("%s was restarted, and its server was %v, and is %v", f.Name, before, now)
	}
	before = r.heads(f)
	r.order(t, "reclone", r.service, "--node", f.Name, "--yes")
	if now := r.heads(f); slices.Equal(now, before) || !r.sups[f.Name].Says("this node's copy can follow the primary: service=redis by=reclone") {
		t.Errorf("%s was cloned, and its server was %v, and is %v", f.Name, before, now)
	}
	if now := r.primary(t); now != p {
		t.Errorf("%s was the primary, and %s is", p.Name, now.Name)
	}
	for _, h := range r.hosts {
		r.upgrade(t, h)
	}

	r.order(t, "pause", r.service) // as its help says, a primary that fails is promoted again, or another one is, when that ends
	r.kill(t, p)
	kit.Until(t, soon, "no node takes it, and all copies run", func() bool {
		return !slices.ContainsFunc(r.hosts, func(h *kit.Host) bool {
			primary, _, err := r.state(h.Addr+r.port, "")
			m, _ := r.Member(r.service, h.Name)
			return err != nil || primary || m.Role != "paused"
		})
	})
	r.order(t, "resume", r.service)
	r.primary(t)
}
