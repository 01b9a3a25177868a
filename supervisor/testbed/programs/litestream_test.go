package programs

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"understudy/packaging/need"
	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/kit/watch"
	"understudy/supervisor/testbed/must"
)

// shop is a connection to testdata/shop.py.
type shop struct {
	http.Client
	url string
}

func dialShop(addr string) (watch.Store, error) {
	return &shop{http.Client{Timeout: watch.AnswerWithin, Transport: &http.Transport{}}, "http://" + addr + "/"}, nil
}

func (s *shop) ask(method, path string, want int) (string, error) {
	req, err := http.NewRequest(method, s.url+path, nil)
	if err != nil {
		return "", err
	}
	resp, err := s.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != want {
		err = fmt.Errorf("%s: %s", resp.Status, text)
	}
	return string(text), err
}

func (s *shop) Put(n int64) error {
	_, err := s.ask(http.MethodPut, strconv.FormatInt(n, 10), http.StatusNoContent)
	return err
}

func (s *shop) All() (all []int64, err error) {
	text, err := s.ask(http.MethodGet, "", http.StatusOK)
	for _, word := range strings.Fields(text) {
		n, errNumber := strconv.ParseInt(word, 10, 64)
		if errNumber != nil {
			return nil, errNumber
		}
		all = append(all, n)
	}
	return all, err
}

func (s *shop) Close() error {
	s.CloseIdleConnections()
	return nil
}

// Litestream copies what is written a moment later. Nothing is lost where it may end by itself: at a switchover, and when it or the program
// is killed. Where supervisor or host are lost, what was acknowledged before the last copy is kept. The folder of the copies stands for S3.
func TestNothingThatLitestreamCopiedIsLost(t *testing.T) {
	need.These(t, "litestream")
	s, _ := recipe(t, "shop", "/usr/bin/python3")
	dirs, socks := map[*kit.Host]string{}, map[*kit.Host]string{}
	share, _, _ := kit.Share(t, "nobody")
	binary := filepath.Join(filepath.Dir(share), "litestream") // nobody may not read what root has in its cache
	cache, err := os.UserCacheDir()
	must.OK(t, err)
	must.OK(t, exec.Command("cp", filepath.Join(cache, "understudy/litestream/litestream"), binary).Run())
	server, err := os.ReadFile(filepath.Join("testdata", "shop.py"))
	must.OK(t, err)
	own, err := os.ReadFile(filepath.Join("..", "..", "..", "examples", "litestream.yml"))
	must.OK(t, err)
	for _, h := range s.hosts() {
		h.PowerOn(t)
		dir, _, _ := kit.Share(t, "nobody")
		dirs[h], socks[h] = dir, filepath.Join(dir, "litestream.sock")
		conf := filepath.Join(filepath.Dir(dir), "litestream.yml")
		text := strings.NewReplacer("/srv/shop", dir, "s3://BUCKET/shop", "file://"+share).Replace(string(own))
		must.OK(t, os.WriteFile(conf, []byte(text), 0o644))
		must.OK(t, os.WriteFile(filepath.Join(filepath.Dir(dir), "shop.py"), server, 0o755))
		s.example(t, h, "litestream.yaml", "  shop:", "  "+s.service+":", "user: shop", "user: nobody",
			"/srv/shop/server", "/usr/bin/python3, "+filepath.Join(filepath.Dir(dir), "shop.py")+", "+filepath.Join(dir, "shop.db"),
			"/srv/shop", dir, "/etc/litestream.yml", conf, "/usr/bin/litestream", binary)
	}
	first := func(words ...string) {
		t.Helper()
		cmd := exec.Command(words[0], words[1:]...)
		cmd.Dir = dirs[s.a]
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v: %s", words, err, out)
		}
	}
	first("setpriv", "--reuid=nobody", "--clear-groups", "/usr/bin/python3", "-c",
		"import sqlite3; sqlite3.connect('shop.db').execute('CREATE TABLE numbers (at INTEGER PRIMARY KEY, n INTEGER)')")
	first("setpriv", "--reuid=nobody", "--clear-groups", binary, "replicate", "-once",
		"-config", filepath.Join(filepath.Dir(dirs[s.a]), "litestream.yml"))

	addr := func(h *kit.Host) string { return h.Addr + ":8080" }
	sups := map[*kit.Host]*kit.Supervisor{s.a: s.start(t, s.a)}
	s.role(t, s.a, "active")
	sups[s.b] = s.start(t, s.b)
	s.role(t, s.b, "standby")
	l := watch.NewLedger(t, dialShop, addr(s.a), addr(s.b))
	active, other := s.a, s.b
	l.Served(t, addr(active))
	for range 5 {
		active, other = other, active
		s.order(t, "switchover", s.service, "--to", active.Name)
		gap := l.Served(t, addr(active))
		t.Logf("switchover: no write was acknowledged for %v", gap)
		l.Check(t, addr(active))
		s.role(t, other, "standby")
	}
	for _, name := range []string{"python3", "litestream"} {
		l.More(t, 100)
		was := kit.Processes(name, dirs[active])
		kit.Signal(syscall.SIGKILL, was...)
		kit.Until(t, soon, "another one runs", func() bool {
			now := kit.Processes(name, dirs[active])
			return len(now) == 1 && !slices.Equal(now, was)
		})
		gap := l.Served(t, addr(active))
		t.Logf("%s killed: no write was acknowledged for %v", name, gap)
		l.Check(t, addr(active))
	}
	var known int // writes that are known to be lost
	for _, c := range []struct {
		what string
		lose func(h *kit.Host)
	}{
		{"supervisor killed", func(h *kit.Host) { sups[h].Kill9() }},
		{"host lost", func(h *kit.Host) { h.PowerOff(t) }},
	} {
		l.More(t, 100)
		copied := l.Sent() - 1
		first(binary, "sync", "-wait", "-socket", socks[active], filepath.Join(dirs[active], "shop.db"))
		count, began := l.Count(), time.Now()
		l.More(t, 100)
		each := time.Since(began) / time.Duration(l.Count()-count)
		c.lose(active)
		active, other = other, active
		gap := l.Served(t, addr(active))
		lost, acked, _ := l.Missing(t, addr(active))
		now := len(lost) - known
		t.Logf("%s: no write was acknowledged for %v; %d of %d are lost, those of %v", c.what, gap, now, acked, time.Duration(now)*each)
		if now > 0 && lost[known] <= copied {
			t.Errorf("%s: %d is lost, although %d and all before it were copied", c.what, lost[known], copied)
		}
		known = len(lost)
		other.Heal(t)
		other.PowerOn(t)
		sups[other] = s.start(t, other)
		s.role(t, other, "standby")
	}
	s.order(t, "switchover", s.service, "--to", other.Name) // where there still is what others never had
	l.Served(t, addr(other))
	if lost, acked, _ := l.Missing(t, addr(other)); len(lost) != known {
		t.Errorf("%d of %d are lost, and were %d", len(lost), acked, known)
	}
	s.role(t, active, "standby")
	must.OK(t, os.Rename(share, share+".away"))
	kit.Until(t, soon, "who does not reach the copies is not fit", func() bool {
		m, ok := s.Member(s.service, active.Name)
		return ok && m.Health == "unfit"
	})
}
