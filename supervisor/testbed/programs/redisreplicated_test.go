package programs

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"understudy/election"
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

// masters asks all copies what they are, all the time. Two masters at once are two that answer so between two such answers of each other.
type masters struct {
	mu    sync.Mutex
	calm  bool // an operator has made a second one
	twice []string
	asked int
}

func watchMasters(t *testing.T, addrs ...string) *masters {
	m := &masters{}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		asks := map[string]func() bool{}
		for _, addr := range addrs {
			asks[addr] = asker(addr)
		}
		every := time.NewTicker(10 * time.Millisecond)
		defer every.Stop()
		for ctx.Err() == nil {
			first, second := map[string]bool{}, map[string]bool{}
			for _, round := range []map[string]bool{first, second} {
				for _, addr := range addrs {
					round[addr] = asks[addr]()
				}
			}
			var both []string
			for i, addr := range addrs {
				for _, other := range addrs[i+1:] {
					if first[addr] && first[other] && second[addr] { // the other one answered in between
						both = append(both, addr+" and "+other)
					}
				}
			}
			m.mu.Lock()
			m.asked++
			if len(both) > 0 && !m.calm {
				m.twice = append(m.twice, fmt.Sprint(time.Now().Format("15:04:05.000"), both))
			}
			m.mu.Unlock()
			<-every.C
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-done
		t.Logf("%d times all were asked", m.asked)
		if len(m.twice) > 0 {
			t.Errorf("two masters, %d times, first %s", len(m.twice), m.twice[0])
		}
	})
	return m
}

func (m *masters) allow(yes bool) {
	m.mu.Lock()
	m.calm = yes
	m.mu.Unlock()
}

// asker keeps a connection over which it asks whether a copy is the master.
func asker(addr string) func() bool {
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

// trio is Redis on three hosts.
type trio struct {
	*set
	hosts []*kit.Host
	dirs  map[string]string
	sups  map[string]*kit.Supervisor
	l     *ledger
}

func newTrio(t *testing.T) *trio {
	s := newSet(t, "redis", "redis-server", "redis-cli")
	r := &trio{set: s, dirs: map[string]string{}, sups: map[string]*kit.Supervisor{}}
	r.hosts = []*kit.Host{s.a, s.b, s.Lab.Host(t, "c")}
	kept := filepath.Join(open(t, t.TempDir()), "kept")
	must(t, os.Mkdir(kept, 0o755))
	for _, h := range r.hosts {
		dir, _, _ := shareOf(t, "redis")
		conf := filepath.Join(filepath.Dir(dir), "redis.conf")
		lines := []string{"include /etc/redis/redis.conf", "bind 0.0.0.0", "protected-mode no", "dir " + dir, "logfile " + dir + "/log", "pidfile " + dir + "/pid", ""}
		must(t, os.WriteFile(conf, []byte(strings.Join(lines, "\n")), 0o644))
		s.example(t, h, "redis-replicated.yaml", "/etc/redis/redis.conf", conf, "/var/lib/redis", dir, "10.0.0.1", h.Addr,
			"services:", "http: {listen: \""+h.Addr+":8437\"}\nservices:", "      positions_from: 2", "      state_dir: "+kept+"\n      positions_from: 2")
		r.dirs[h.Name] = dir
	}
	return r
}

func (r *trio) up(t *testing.T, h *kit.Host) {
	t.Helper()
	r.sups[h.Name] = r.start(t, h)
}

// primary waits until one of the hosts is active, and well, and all others that run have its data.
func (r *trio) primary(t *testing.T) *kit.Host {
	t.Helper()
	var active *kit.Host
	var saw string
	var token int64
	settled := func() bool {
		active, saw = nil, ""
		for _, h := range r.hosts {
			conn, err := net.DialTimeout("tcp", h.Addr+":6379", 200*time.Millisecond)
			if err != nil {
				saw += h.Name + ": " + err.Error() + "; "
				continue
			}
			said, err := (&redis{conn, bufio.NewReader(conn)}).info()
			conn.Close()
			m, _ := r.Member(r.service, h.Name)
			about, _, _ := r.Conn().Get(r.Path("services", r.service, "copies", h.Name))
			var told election.Copy
			_ = json.Unmarshal(about, &told)
			saw += fmt.Sprintf("%s: %s %s, of %d, up %v, to %s %v; ", h.Name, m.Role, said["role"], told.Followed, said["master_link_status"] == "up" && told.Toward == 0, said["master_host"], err)
			if said["role"] == "master" && m.Role == "active" && m.Health == "ok" && told.Promoted > 0 {
				active, token = h, told.Promoted
			}
		}
		if active == nil {
			return false
		}
		for _, h := range r.hosts {
			if h != active && !strings.Contains(saw, fmt.Sprintf("%s: standby slave, of %d, up true, to %s", h.Name, token, active.Addr)) {
				return false
			}
		}
		return true
	}
	if !kit.Reached(2*soon, settled) {
		t.Fatalf("no primary with two followers: %s", saw)
	}
	return active
}

// reads demands that a load balancer sends writers to the primary, and readers to the others.
func (r *trio) reads(t *testing.T, primary *kit.Host) {
	t.Helper()
	for _, h := range r.hosts {
		part, other := "follower", "active"
		if h == primary {
			part, other = other, part
		}
		var text string
		var err error
		url := "http://" + h.Addr + ":8437/"
		if !kit.Reached(soon, func() bool {
			text, err = get(t.Context(), http.DefaultClient, url+part+"/redis")
			return err == nil && text == part
		}) {
			t.Errorf("%s is no %s: %s, %v", h.Name, part, text, err)
		}
		if _, err := get(t.Context(), http.DefaultClient, url+other+"/redis"); err == nil || !strings.Contains(err.Error(), "503") {
			t.Errorf("%s is %s, too: %v", h.Name, other, err)
		}
	}
}

// others are the hosts beside one.
func (r *trio) others(than *kit.Host) (all []*kit.Host) {
	for _, h := range r.hosts {
		if h != than {
			all = append(all, h)
		}
	}
	return all
}

// servers are the copy's processes on a host.
func (r *trio) servers(h *kit.Host) []int { return processes("redis-server", r.dirs[h.Name]) }

// failed waits until another host than the former one serves, and demands that nothing is lost.
func (r *trio) failed(t *testing.T, what string, former *kit.Host) *kit.Host {
	t.Helper()
	var now string
	kit.Until(t, 2*soon, "another copy acknowledges writes: "+what, func() bool {
		r.l.mu.Lock()
		defer r.l.mu.Unlock()
		now = r.l.where
		return now != former.Addr+":6379" && time.Since(r.l.last) < time.Second
	})
	r.l.mu.Lock()
	gap := r.l.gap
	r.l.gap = 0
	r.l.mu.Unlock()
	t.Logf("%s: no write was acknowledged for %v", what, gap)
	r.l.check(t, now)
	for _, h := range r.hosts {
		if h.Addr+":6379" == now {
			return h
		}
	}
	t.Fatal(now)
	return nil
}

// P1: at most one copy of Redis is promoted, and what WAIT 1 has acknowledged is kept through every kind of failover.
func TestNothingThatTwoCopiesOfRedisHaveIsLost(t *testing.T) {
	r := newTrio(t)
	for _, h := range r.hosts {
		r.up(t, h)
	}
	p := r.primary(t)
	r.reads(t, p)
	var addrs []string
	for _, h := range r.hosts {
		addrs = append(addrs, h.Addr+":6379")
	}
	m := watchMasters(t, addrs...)
	r.l = newLedger(t, dialReplicated, addrs...)
	r.l.served(t, p.Addr+":6379")

	kit.Signal(syscall.SIGKILL, r.servers(p)...)
	r.failed(t, "primary killed", p)
	p = r.primary(t)

	r.sups[p.Name].Kill9()
	r.failed(t, "supervisor killed", p)
	r.up(t, p)
	p = r.primary(t)

	to := r.others(p)[0]
	r.order(t, "switchover", "redis", "--to", to.Name)
	if now := r.failed(t, "switchover", p); now != to {
		t.Errorf("%s is active, not %s", now.Name, to.Name)
	}
	p = r.primary(t)

	// An emptied copy comes back at once, and must not have the others follow it.
	files, err := filepath.Glob(r.dirs[p.Name] + "/*")
	must(t, err)
	for _, f := range files {
		if filepath.Base(f) != "log" {
			must(t, os.RemoveAll(f))
		}
	}
	kit.Signal(syscall.SIGKILL, r.servers(p)...)
	r.failed(t, "primary emptied", p)
	p = r.primary(t)

	p.CutFrom(t, r.Addrs()...)
	r.failed(t, "host cut off from ZooKeeper", p)
	p.Heal(t)
	p = r.primary(t)
	r.reads(t, p)

	// An operator promotes a follower by hand: it is killed, and follows again. The primary does not notice.
	was, hand := r.servers(p), r.others(p)[1]
	m.allow(true)
	before := r.servers(hand)
	conn, err := net.Dial("tcp", hand.Addr+":6379")
	must(t, err)
	if _, err := (&redis{conn, bufio.NewReader(conn)}).ask("REPLICAOF", "NO", "ONE"); err != nil {
		t.Fatal(err)
	}
	conn.Close()
	kit.Until(t, soon, "the second master is killed", func() bool {
		now := r.servers(hand)
		return len(now) == 1 && !slices.Equal(now, before)
	})
	m.allow(false)
	if now := r.primary(t); now != p || fmt.Sprint(r.servers(p)) != fmt.Sprint(was) {
		t.Errorf("the primary was %s %v, and is %s %v", p.Name, was, now.Name, r.servers(now))
	}
	r.l.check(t, p.Addr+":6379")

	// All nodes go, and one of those that return first has older data or none that it knows of: nobody is promoted before two have told.
	r.l.stop()
	for _, h := range r.hosts {
		r.sups[h.Name].Stop(t)
	}
	for _, h := range r.hosts {
		r.up(t, h)
	}
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
		return strings.HasPrefix(m.Why, "1 of 2 copies have told their position")
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
