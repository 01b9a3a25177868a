package e2e

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-zookeeper/zk"

	"understudy/supervisor/testbed/kit"
)

// Whoever can write ZooKeeper forges a breadcrumb. No method of the chain asks his server or fences what the config does not know; the
// service waits, its log says why in a line, and an operator ends it.
func TestAForgedBreadcrumbAimsNoFencingMethod(t *testing.T) {
	p := brief(t, stage(t))
	h := p.Lab.Host(t, "a")
	var asked atomic.Int32
	ln, err := net.Listen("tcp", net.JoinHostPort(p.Lab.Addr(), "0"))
	must(t, err)
	attacker := &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) })}
	go func() { _ = attacker.Serve(ln) }()
	t.Cleanup(func() { _ = attacker.Close() })
	ip, port, err := net.SplitHostPort(ln.Addr().String())
	must(t, err)

	dir := t.TempDir()
	bearer, switched := filepath.Join(dir, "bearer"), filepath.Join(dir, "switched")
	must(t, os.WriteFile(bearer, []byte("the-bearer-token\n"), 0o600))
	agent := kit.Script(t, `cat >>`+switched+`; exit 2`)

	folder := filepath.Join(p.Options.Root, "services", p.Options.Service)
	conn := p.Conn()
	for _, path := range []string{p.Options.Root, filepath.Dir(folder), folder} {
		_, err := conn.Create(path, nil, 0, zk.WorldACL(zk.PermAll))
		must(t, err)
	}
	node := "x@" + ip
	crumb := fmt.Sprintf(`{"node": %q, "host": %q, "machine": "m", "boot": "b", "token": 1, "session": "0x1", "session_timeout_ms": 1000, "agent": "%s:%s"}`, node, ip, ip, port)
	_, err = conn.Create(filepath.Join(folder, "ActiveBreadCrumb"), []byte(crumb), 0, zk.WorldACL(zk.PermAll))
	must(t, err)

	a := p.FromFile(t, h, p.Config(t, h, "", kit.Command(p.Child()), fmt.Sprintf(`fencing:
      methods:
        - http: {url: "http://bmc-{node}:%[1]s/off", bearer_file: %[2]s, timeout: 2s}
        - http: {url: "http://{host}:%[1]s/off", bearer_file: %[2]s, timeout: 2s}
        - fence_agent: {command: %[3]s, plugs: {db-1: 7}, timeout: 2s}
      on_failure: refuse`, port, bearer, agent)))
	kit.Until(t, soon, "the chain is through", func() bool {
		return a.Says("which the method's plugs do not list") && a.Says("would let a breadcrumb choose whom to ask")
	})
	if text, _ := os.ReadFile(switched); asked.Load() > 0 || len(text) > 0 || strings.Contains(a.Log(), "the previous node's program is dead") {
		t.Errorf("the attacker was asked %d times, and this was switched off: %s", asked.Load(), text)
	}
	if runs := p.Running(); len(runs) > 0 {
		t.Errorf("it runs: %+v", runs)
	}
	p.order(t, h, "fence", "confirm", p.Options.Service, "--node", node)
	p.On(t, soon, "a", 0)
}
