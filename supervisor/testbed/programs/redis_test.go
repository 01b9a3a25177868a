package programs

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"understudy/supervisor/testbed/kit"
)

// redis is a connection that speaks Redis' protocol.
type redis struct {
	net.Conn
	replies *bufio.Reader
}

func dialRedis(addr string) (store, error) {
	conn, err := net.DialTimeout("tcp", addr, answerWithin)
	if err != nil {
		return nil, err
	}
	return &redis{conn, bufio.NewReader(conn)}, nil
}

func (r *redis) close() { r.Close() }

func (r *redis) write(n int64) error {
	_, err := r.ask("RPUSH", "numbers", strconv.FormatInt(n, 10))
	return err
}

func (r *redis) all() ([]int64, error) {
	var all []int64
	for {
		words, err := r.ask("LRANGE", "numbers", strconv.Itoa(len(all)), strconv.Itoa(len(all)+atOnce-1))
		if err != nil || len(words) == 0 {
			return all, err
		}
		for _, word := range words {
			n, err := strconv.ParseInt(word, 10, 64)
			if err != nil {
				return nil, err
			}
			all = append(all, n)
		}
	}
}

// ask sends a command and reads its reply: one word, or a list of them.
func (r *redis) ask(words ...string) ([]string, error) {
	_ = r.SetDeadline(time.Now().Add(answerWithin))
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(words))
	for _, w := range words {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(w), w)
	}
	if _, err := io.WriteString(r, b.String()); err != nil {
		return nil, err
	}
	line, err := r.line()
	if err != nil {
		return nil, err
	}
	if line[0] != '*' {
		return []string{line[1:]}, nil
	}
	n, err := strconv.Atoi(line[1:])
	if err != nil {
		return nil, err
	}
	list := make([]string, n)
	for i := range list {
		if _, err := r.line(); err != nil { // its length: a number has no line end in it
			return nil, err
		}
		if list[i], err = r.line(); err != nil {
			return nil, err
		}
	}
	return list, nil
}

func (r *redis) line() (string, error) {
	line, err := r.replies.ReadString('\n')
	if err != nil {
		return "", err
	}
	line = strings.TrimSuffix(line, "\r\n")
	if line == "" || line[0] == '-' {
		return "", errors.New("redis says " + line)
	}
	return line, nil
}

// shareOf makes storage that both hosts reach, owned by the user.
func shareOf(t *testing.T, name string) (dir string, uid, gid int) {
	t.Helper()
	u, err := user.Lookup(name)
	must(t, err)
	uid, err = strconv.Atoi(u.Uid)
	must(t, err)
	gid, err = strconv.Atoi(u.Gid)
	must(t, err)
	dir = filepath.Join(open(t, t.TempDir()), name)
	must(t, os.Mkdir(dir, 0o700))
	must(t, os.Chown(dir, uid, gid))
	return dir, uid, gid
}

func TestNothingThatRedisAcknowledgedIsLost(t *testing.T) {
	s := newSet(t, "redis", "redis-server", "redis-cli")
	dir, _, _ := shareOf(t, "redis")
	conf := filepath.Join(filepath.Dir(dir), "redis.conf")
	lines := []string{"include /etc/redis/redis.conf", "bind 0.0.0.0", "protected-mode no", "dir " + dir, "appendfsync always",
		"logfile " + dir + "/log", "pidfile " + dir + "/pid", ""}
	must(t, os.WriteFile(conf, []byte(strings.Join(lines, "\n")), 0o644))
	for _, h := range []*kit.Host{s.a, s.b} {
		s.example(t, h, "redis.yaml", "/etc/redis/redis.conf", conf, "/var/lib/redis", dir)
	}
	failOver(t, s, dialRedis, ":6379", func() []int { return processes("redis-server", dir) })
}

// failOver has a program's service fail in every way, while a client writes.
func failOver(t *testing.T, s *set, dial func(string) (store, error), port string, running func() []int) {
	t.Helper()
	a, b := s.a.Addr+port, s.b.Addr+port
	first := s.start(t, s.a)
	s.role(t, s.a, "active")
	second := s.start(t, s.b)
	s.role(t, s.b, "standby")
	l := newLedger(t, dial, a, b)
	l.served(t, a)
	then := func(what, addr string, limit time.Duration) {
		t.Helper()
		gap := l.served(t, addr)
		t.Logf("%s: no write was acknowledged for %v", what, gap)
		if gap > limit {
			t.Errorf("%s: no write was acknowledged for %v: more than %v", what, gap, limit)
		}
		l.check(t, addr)
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
