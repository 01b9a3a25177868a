package e2e

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"understudy/packaging/need"
	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/must"
)

// throughHAProxy runs the example's HAProxy in front of two hosts and returns its address.
func throughHAProxy(t *testing.T, service, a, b string) string {
	t.Helper()
	need.These(t, "haproxy")
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "examples", "haproxy.cfg"))
	must.OK(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.OK(t, err)
	front := l.Addr().String()
	must.OK(t, l.Close())
	config := strings.NewReplacer("127.0.0.1:6380", front, "127.0.0.1:6379", a+":6379", "127.0.0.2:6379", b+":6379",
		"/active/redis", "/active/"+service).Replace(string(text))
	file := filepath.Join(t.TempDir(), "haproxy.cfg")
	must.OK(t, os.WriteFile(file, []byte(config), 0o600))
	path, err := exec.LookPath("haproxy")
	if err != nil {
		path = "/usr/sbin/haproxy"
	}
	started(t, nil, path, "-db", "-f", file)
	return front
}

// whoAnswers is the node that a client is sent to; empty when there is none.
func whoAnswers(addr string) string {
	c, err := net.DialTimeout("tcp", addr, 500*time.Millisecond)
	if err != nil {
		return ""
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(500 * time.Millisecond)) // a connection takes it
	text, err := io.ReadAll(c)
	if err != nil {
		return ""
	}
	return string(text)
}

// says is the code of a GET.
func says(t *testing.T, url string) int {
	code, _ := within(t, soon, url) // whether it is answered in time is not asked
	return code
}

// get is the code and the body of a GET; 0 when there is no answer.
func get(t *testing.T, url string) (code int, text string) {
	t.Helper()
	return within(t, time.Second, url)
}

// within is get with a limit.
func within(t *testing.T, limit time.Duration, url string) (code int, text string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	must.OK(t, err)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, ""
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, ""
	}
	return resp.StatusCode, string(body)
}

// A load balancer follows the active node, whether it is stopped or killed, and finds it again within a second.
func TestALoadBalancerFollowsTheActiveNode(t *testing.T) {
	need.These(t, "haproxy")
	p := newPlay(t, stage(t), "answer=:6379")
	p.Options.Flags = []string{"--http", ":8437"}
	a, b := p.Lab.Host(t, "a"), p.Lab.Host(t, "b")
	service := p.Options.Service
	front := throughHAProxy(t, service, a.Addr, b.Addr)
	one, _ := p.Active(t, a)
	two := p.Standby(t, b)
	kit.Until(t, soon, "clients are sent to a", func() bool { return whoAnswers(front) == "a" })
	for host, want := range map[*kit.Host]int{a: http.StatusOK, b: http.StatusServiceUnavailable} {
		if got := says(t, fmt.Sprintf("http://%s:8437/active/%s", host.Addr, service)); got != want {
			t.Errorf("%s: /active says %d", host.Name, got)
		}
	}
	one.Stop(t)
	took := kit.Until(t, soon, "clients are sent to b", func() bool { return whoAnswers(front) == "b" })
	t.Logf("found b %v after a was stopped", took)
	p.Standby(t, a)
	two.Signal(syscall.SIGKILL)
	took = kit.Until(t, soon, "clients are sent to a again", func() bool { return whoAnswers(front) == "a" })
	t.Logf("found a %v after b's supervisor was killed", took)
}
