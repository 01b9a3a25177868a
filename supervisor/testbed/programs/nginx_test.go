package programs

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/kit/watch"
	"understudy/supervisor/testbed/must"
)

// writeNginx writes a host's configuration of nginx, and puts it in place as a whole.
func writeNginx(t *testing.T, dir, port, answer string) (path string) {
	t.Helper()
	path = filepath.Join(dir, "nginx.conf")
	text := fmt.Sprintf(`user root;
worker_processes 1;
pid %[1]s/nginx.pid;
error_log %[1]s/error.log;
events { worker_connections 256; }
http {
	access_log off;
	server {
		listen %[2]s;
		location = / { %[3]s; }
		location /slow/ { alias %[1]s/; limit_rate 64k; }
	}
}
`, dir, port, answer)
	must.OK(t, os.WriteFile(path+".new", []byte(text), 0o644))
	must.OK(t, os.Rename(path+".new", path))
	return path
}

func TestNginxIsReloadedAndHandedOverWithoutBreakingOff(t *testing.T) {
	s := newSet(t, "nginx", "/usr/sbin/nginx")
	dirs := map[*kit.Host]string{s.a: t.TempDir(), s.b: t.TempDir()}
	for h, dir := range dirs {
		conf := writeNginx(t, dir, "80", "return 200 "+h.Name)
		s.example(t, h, "nginx.yaml", "/usr/sbin/nginx,", "/usr/sbin/nginx, -c, "+conf+",", "interval: 30s", "interval: 300ms",
			"interval: 5s, timeout: 2s", "interval: 500ms, timeout: 500ms", "stop_timeout: 10s", "stop_timeout: 4s")
	}
	const long = 128 << 10 // the first half is sent at once, the second one takes a second
	must.OK(t, os.WriteFile(filepath.Join(dirs[s.a], "long"), make([]byte, long), 0o644))
	client := &http.Client{Timeout: soon, Transport: &http.Transport{DisableKeepAlives: true}}
	answers := func(h *kit.Host, want string) {
		t.Helper()
		var got string
		var err error
		if !kit.Reached(soon, func() bool { got, err = watch.Get(t.Context(), client, "http://"+h.Addr+"/"); return got == want }) {
			t.Fatalf("%s answers %q, %v; wanted %q", h.Name, got, err, want)
		}
	}
	active := s.start(t, s.a)
	s.role(t, s.a, "active")
	answers(s.a, "a")
	master := kit.CommandLine(pidIn(t, dirs[s.a]))

	// Its own reload: the same process, another answer.
	before := pidIn(t, dirs[s.a])
	writeNginx(t, dirs[s.a], "80", "return 200 again")
	s.order(t, "reload", "nginx")
	answers(s.a, "again")
	if now := pidIn(t, dirs[s.a]); now != before || !kit.Alive(now) || kit.CommandLine(now) != master {
		t.Errorf("it was started anew: %d, %d", before, now)
	}

	// A worker that hangs is noticed from outside.
	kit.Signal(syscall.SIGSTOP, kit.Children(before)...)
	kit.Until(t, soon, "it is started anew", func() bool { return !kit.Alive(before) })
	answers(s.a, "again")
	s.role(t, s.a, "active")

	// A node whose configuration is broken is no candidate.
	writeNginx(t, dirs[s.b], "80", "retrun 200")
	s.start(t, s.b)
	kit.Until(t, soon, "b says that it is not fit", func() bool {
		m, ok := s.Member(s.service, "b")
		return ok && m.Health == "unfit" && m.Role == "standby"
	})
	writeNginx(t, dirs[s.b], "80", "return 200 b")
	s.role(t, s.b, "standby")

	stoppedWhileAnswering(t, active, client, "http://"+s.a.Addr+"/slow/long", long)
	answers(s.b, "b")
	if code := active.ExitCode(t, soon); code != 0 {
		t.Errorf("exit code %d", code)
	}
	s.role(t, s.b, "active")
}

// stoppedWhileAnswering stops a supervisor while its web server answers: what is being answered is answered to its end.
func stoppedWhileAnswering(t *testing.T, active *kit.Supervisor, client *http.Client, url string, long int) {
	t.Helper()
	r, err := client.Get(url)
	must.OK(t, err)
	defer r.Body.Close()
	began := time.Now()
	active.Signal(syscall.SIGTERM)
	text, err := io.ReadAll(r.Body)
	if err != nil || len(text) != long {
		t.Errorf("an answer was broken off after %d of %d bytes, %v", len(text), long, err)
	}
	if took := time.Since(began); took < 500*time.Millisecond {
		t.Errorf("the answer took only %v: it shows nothing", took)
	}
}

// pidIn is the process that the configuration's pid file names.
func pidIn(t *testing.T, dir string) int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "nginx.pid"))
	must.OK(t, err)
	var pid int
	_, err = fmt.Sscan(string(text), &pid)
	must.OK(t, err)
	return pid
}
