package programs

import (
	"bufio"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"understudy/supervisor/testbed/kit"
)

// replicatedRedis is a connection to one copy. A write counts once another copy has it, too.
type replicatedRedis struct{ *redis }

func dialReplicated(addr string) (store, error) {
	conn, err := net.DialTimeout("tcp", addr, answerWithin)
	if err != nil {
		return nil, err
	}
	return replicatedRedis{&redis{conn, bufio.NewReader(conn)}}, nil
}

func (r replicatedRedis) write(n int64) error {
	if err := r.redis.write(n); err != nil {
		return err
	}
	held, err := r.ask("WAIT", "1", "800")
	if err == nil && (len(held) != 1 || held[0] == "0") {
		err = errors.New("no other copy has it")
	}
	return err
}

// askRedis keeps a connection over which it asks whether a copy is the master.
func askRedis(addr string) func() bool {
	var r *redis
	return func() bool {
		if r == nil {
			conn, err := net.DialTimeout("tcp", addr, 50*time.Millisecond)
			if err != nil {
				return false
			}
			r = &redis{conn, bufio.NewReader(conn)}
		}
		said, err := r.info()
		if err != nil {
			r.close()
			r = nil
		}
		return said["role"] == "master"
	}
}

// info is what a copy says of its replication.
func (r *redis) info() (map[string]string, error) {
	_ = r.SetDeadline(time.Now().Add(100 * time.Millisecond))
	if _, err := r.Write([]byte("*2\r\n$4\r\nINFO\r\n$11\r\nreplication\r\n")); err != nil {
		return nil, err
	}
	head, err := r.line()
	if err != nil {
		return nil, err
	}
	n, err := strconv.Atoi(strings.TrimPrefix(head, "$"))
	if err != nil {
		return nil, err
	}
	said := map[string]string{}
	for n += 2; n > 0; {
		line, err := r.replies.ReadString('\n')
		if err != nil {
			return nil, err
		}
		n -= len(line)
		key, value, _ := strings.Cut(strings.TrimRight(line, "\r\n"), ":")
		said[key] = value
	}
	return said, nil
}

// redisState asks one copy.
func redisState(addr, from string) (primary, follows bool, err error) {
	conn, err := net.DialTimeout("tcp", addr, 200*time.Millisecond)
	if err != nil {
		return false, false, err
	}
	defer conn.Close()
	said, err := (&redis{conn, bufio.NewReader(conn)}).info()
	return said["role"] == "master", said["role"] == "slave" && said["master_link_status"] == "up" && said["master_host"] == from, err
}

// promoteRedis is what an operator does by hand.
func promoteRedis(addr string) error {
	conn, err := net.DialTimeout("tcp", addr, answerWithin)
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = (&redis{conn, bufio.NewReader(conn)}).ask("REPLICAOF", "NO", "ONE")
	return err
}

func redisTrio(t *testing.T, swaps ...string) *trio {
	r := newTrio(t, "redis", "redis", copies{
		port: ":6379", program: "redis-server", state: redisState, asker: askRedis, dial: dialReplicated, promote: promoteRedis,
	}, "redis-server", "redis-cli")
	for _, h := range r.hosts {
		dir := r.dirs[h.Name]
		conf := filepath.Join(filepath.Dir(dir), "redis.conf")
		lines := []string{"include /etc/redis/redis.conf", "bind 0.0.0.0", "protected-mode no", "dir " + dir, "logfile " + dir + "/log", "pidfile " + dir + "/pid", ""}
		must(t, os.WriteFile(conf, []byte(strings.Join(lines, "\n")), 0o644))
		r.copy(t, h, "redis-replicated.yaml", append(slices.Clone(swaps), "/etc/redis/redis.conf", conf, "/var/lib/redis", dir)...)
	}
	return r
}

// P1: at most one copy of Redis is promoted, and what WAIT 1 has acknowledged is kept through every kind of failover.
func TestNothingThatTwoCopiesOfRedisHaveIsLost(t *testing.T) {
	r := redisTrio(t)
	p := r.begin(t)
	r.reads(t, p)

	r.kill(t, p)
	r.failed(t, "primary killed", nil) // its own copy may have the newest data, and be back in time
	p = r.primary(t)

	r.sups[p.Name].Kill9()
	r.failed(t, "supervisor killed", p)
	r.up(t, p)
	p = r.primary(t)

	to, before := r.others(p)[0], r.heads(p)
	r.order(t, "switchover", "redis", "--to", to.Name)
	if now := r.failed(t, "switchover", p); now != to {
		t.Errorf("%s is active, not %s", now.Name, to.Name)
	}
	old := p
	p = r.primary(t)
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
	r.l.check(t, p.Addr+":6379")

	// All nodes go, and one of those that return first has older data or none that it knows of: nobody is promoted before two have told.
	r.l.stop()
	r.restart(t, r.hosts, r.hosts)
	p = r.primary(t)
	r.l.check(t, p.Addr+":6379")

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
	r.l.check(t, left.Addr+":6379")
}
