package e2e

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"understudy/packaging/need"
	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/must"
)

const nginx = "/usr/sbin/nginx"

// throughNginx runs the example's nginx in front of two hosts and returns its address.
func throughNginx(t *testing.T, a, b string) string {
	t.Helper()
	need.These(t, "nginx")
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "examples", "nginx-proxy.conf"))
	must.OK(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.OK(t, err)
	front := l.Addr().String()
	must.OK(t, l.Close())
	dir := t.TempDir()
	config := strings.NewReplacer("127.0.0.1:8000", front, "127.0.0.1:", a+":", "127.0.0.2:", b+":", "http {", "http {\naccess_log off;").Replace(string(text))
	if strings.Contains(config, "127.0.0.2") {
		t.Fatalf("it has more addresses than this test knows of:\n%s", config)
	}
	file := filepath.Join(dir, "nginx.conf")
	must.OK(t, os.WriteFile(file, []byte(config), 0o600))
	started(t, nil, nginx, "-p", dir, "-c", file, "-g", fmt.Sprintf("daemon off; pid %s/nginx.pid; error_log stderr;", dir))
	return "http://" + front
}

// webServer is a wrapped program that answers with its node's name.
func webServer(t *testing.T, node string) string {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "nginx.conf")
	text := fmt.Sprintf("user root;\npid %[1]s/nginx.pid;\nerror_log %[1]s/error.log;\nevents {}\nhttp { access_log off; server { listen 8080; return 200 %[2]s; } }\n", dir, node)
	must.OK(t, os.WriteFile(file, []byte(text), 0o600))
	return fmt.Sprintf("command: [%s, -c, %s, -g, 'daemon off;']", nginx, file)
}

// nginx sends clients to the node that is active, and shows the page and its events of any node.
func TestNginxFollowsTheActiveNodeAndServesThePage(t *testing.T) {
	need.These(t, "nginx")
	p := newPlay(t, stage(t))
	a, b := p.Lab.Host(t, "a"), p.Lab.Host(t, "b")
	service := p.Options.Service
	front := throughNginx(t, a.Addr, b.Addr)
	supervise := func(h *kit.Host) *kit.Supervisor {
		return p.FromFile(t, h, p.Config(t, h, "http: {listen: \":8437\"}\n", webServer(t, h.Name), `ready: {tcp: "127.0.0.1:8080", timeout: 10s}`, "stop_timeout: 2s"))
	}
	answers := func(node string) func() bool {
		return func() bool { _, text := get(t, front+"/"); return text == node }
	}
	one := supervise(a)
	kit.Until(t, soon, "clients are sent to a", answers("a"))
	two := supervise(b)
	p.Stands(t, b)

	if code, text := get(t, front+"/understudy/"); code != http.StatusOK || !strings.Contains(text, "<title>Understudy</title>") {
		t.Errorf("the page: %d", code)
	}
	if code, text := get(t, front+"/understudy/api/v1/status"); code != http.StatusOK || !strings.Contains(text, service) {
		t.Errorf("the status: %d %s", code, text)
	}
	for _, path := range []string{"/", "/understudy/", "/understudy/api/v1/status"} { // as a page of a foreign site has a browser ask
		if code := named(t, front+path, "evil.example"); code != http.StatusMisdirectedRequest {
			t.Errorf("%s under a foreign name: %d", path, code)
		}
	}
	events := follow(t, front+"/understudy/api/v1/events")
	events.until(t, "event: status")

	one.Stop(t)
	took := kit.Until(t, soon, "clients are sent to b", answers("b"))
	t.Logf("found b %v after a was stopped", took)
	again := supervise(a)
	p.Stands(t, a)
	two.Signal(syscall.SIGKILL)
	took = kit.Until(t, soon, "clients are sent to a again", answers("a"))
	t.Logf("found a %v after b's supervisor was killed", took)
	again.Stop(t)
}

// named is the code of a GET under another name.
func named(t *testing.T, url, host string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	must.OK(t, err)
	req.Host = host
	resp, err := http.DefaultClient.Do(req)
	must.OK(t, err)
	must.OK(t, resp.Body.Close())
	return resp.StatusCode
}

// followed is a stream of events, line by line.
type followed chan string

func follow(t *testing.T, url string) followed {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	must.OK(t, err)
	resp, err := http.DefaultClient.Do(req)
	must.OK(t, err)
	lines := make(followed, 100)
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer close(lines)
		s := bufio.NewScanner(resp.Body)
		s.Buffer(nil, 1<<20)
		for s.Scan() {
			select {
			case lines <- s.Text():
			case <-ctx.Done():
				return
			}
		}
	}()
	t.Cleanup(func() { cancel(); <-done; resp.Body.Close() })
	return lines
}

func (f followed) until(t *testing.T, line string) {
	t.Helper()
	late := time.After(soon)
	for {
		select {
		case got, ok := <-f:
			if !ok {
				t.Fatalf("the stream ended before %q", line)
			}
			if got == line {
				return
			}
		case <-late:
			t.Fatalf("no %q", line)
		}
	}
}
