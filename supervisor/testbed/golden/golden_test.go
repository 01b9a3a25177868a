// Package golden holds what scripts rely on against files that are kept: the paths and the data of znodes, what `--json` prints, what
// HTTP answers, the names of metrics. It runs commands and supervisors against the embedded server, as any user.
//
//	go test ./supervisor/testbed/golden -update   # when a change is meant; docs and CHANGELOG say so too
package golden

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/google/go-cmp/cmp"

	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/kit/itself"
	"understudy/supervisor/testbed/must"
)

var update = flag.Bool("update", false, "write the files anew")

func TestMain(m *testing.M) { itself.Main(m) }

const root = "/golden"

// cluster is a server and two supervisors with the same services.
type cluster struct {
	*testing.T
	zk   string
	http map[string]string // of a node
	conn *zk.Conn

	text  string    // of the config, the same for both nodes
	files [2]string // each node's copy of it
}

// free is an address that nobody listens on.
func free(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.OK(t, err)
	must.OK(t, l.Close())
	return l.Addr().String()
}

// start runs understudy until the test ends.
func (c *cluster) start(words ...string) {
	c.Helper()
	var out bytes.Buffer
	cmd := exec.Command(kit.UnderstudyBinary(c), words...)
	cmd.Stdout, cmd.Stderr = &out, &out
	must.OK(c, cmd.Start())
	c.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		if c.Failed() {
			c.Logf("%v:\n%s", words, out.String())
		}
	})
}

func (c *cluster) ask(words ...string) string {
	c.Helper()
	var errs bytes.Buffer
	cmd := exec.Command(kit.UnderstudyBinary(c), append(words, "--zk", c.zk, "--root", root)...)
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		c.Fatalf("%v: %v: %s", words, err, errs.String())
	}
	return string(out)
}

const services = `
  plain: {command: [sleep, "100000"], grace_delay: 1s}
  queued: {command: [sleep, "100000"], grace_delay: 1s, election: queue, priority: 1, nodes: {one: {priority: 2}}}
  unit:
    grace_delay: 1s
    priority: 1
    nodes: {one: {priority: 2}}
    moves: {max: 3, within: 1h}
    processes:
      - {name: first, command: ["true"], oneshot: true, undo: ["true"]}
      - {name: second, command: [sleep, "100000"]}
  held: {command: [sleep, "100000"], grace_delay: 1s, nodes: {two: {eligible: false}}}
  secure: {command: [sleep, "100000"], on_zookeeper_loss: failsafe}
`

func begin(t *testing.T) *cluster {
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir()) // a oneshot with an undo needs one, unless root runs it
	c := &cluster{T: t, zk: free(t), http: map[string]string{}}
	c.start("dev", "--listen", c.zk)
	kit.Until(t, kit.Soon, "the server serves", func() bool {
		conn, err := net.Dial("tcp", c.zk)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	secret := filepath.Join(t.TempDir(), "secret")
	must.OK(t, os.WriteFile(secret, []byte("a secret that all of them share\n"), 0o600))
	conn, _, err := zk.Connect([]string{c.zk}, 10*time.Second, zk.WithLogInfo(false))
	must.OK(t, err)
	t.Cleanup(conn.Close)
	c.conn = conn
	nodes := []string{"one", "two"}
	text := fmt.Sprintf("zookeeper: {servers: [%q], root: %s, lease: 5s, trusted_network: true}\n"+
		"fencing: {agent: {listen: \":1\", secret_file: %q}}\nservices:%snode:\n", c.zk, root, secret, services)
	for _, node := range nodes {
		c.http[node] = free(t)
		text += fmt.Sprintf("  %s: {http: {listen: %q}, fencing: {agent: {listen: %q}}}\n", node, c.http[node], free(t))
	}
	c.text = text
	for i, node := range nodes {
		c.files[i] = filepath.Join(t.TempDir(), "u.yaml")
		must.OK(t, os.WriteFile(c.files[i], []byte(text), 0o600))
		c.start("run", "--config", c.files[i], "--node", node)
		c.until(node, i)
	}
	return c
}

// until waits until the i-th node has said what it is for all services.
func (c *cluster) until(node string, i int) {
	c.Helper()
	role := []string{"active", "standby"}[i]
	for _, service := range []string{"plain", "queued", "unit", "held", "secure"} {
		if service == "held" && i == 1 {
			role = "standby"
		}
		kit.Until(c, kit.Soon, node+" is "+role+" for "+service, func() bool {
			data, _, err := c.conn.Get(path.Join(root, "services", service, "members", node))
			return err == nil && strings.Contains(string(data), `"role":"`+role+`"`)
		})
	}
}

// settled waits until the active node has counted its standby among those that promise, and both have said so.
func (c *cluster) settled() {
	c.Helper()
	kit.Until(c, kit.Soon, "the breadcrumb lists the standby", func() bool {
		data, _, err := c.conn.Get(root + "/services/secure/ActiveBreadCrumb")
		return err == nil && strings.Contains(string(data), `"two"`)
	})
}

var (
	moment  = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)`)
	address = regexp.MustCompile(`127\.0\.0\.1:\d+`)
	session = regexp.MustCompile(`[0-9a-f]{14,}`)
	label   = regexp.MustCompile(`\b(go|le|node|service|version)="[^"]*"`) // not what the others say: reasons, roles, results
	number  = regexp.MustCompile(`n_\d{10}`)
	guid    = regexp.MustCompile(`/(claim|record)-\w+`)
	who     = regexp.MustCompile(`[\w.-]+@[\w.-]+`)
)

// fickle are keys whose values are another each time; what is there is their type.
var fickle = map[string]bool{
	"pid": true, "config": true, "config_sum": true, "guardian_pid": true, "guardians": true, "token": true, "boot": true, "machine": true, "session": true, "record": true, "beat": true, "session_id": true, "host": true, "version": true,
	"zxid": true, "czxid": true, "order": true, "id": true, "epoch": true, "uptime_seconds": true, "lease_ms": true, "gap_ms": true, "ran_ms": true, "ready_ms": true, "release_ms": true, "container": true, "file": true, "age_ms": true,
}

// normal is data with all that is another each time replaced by its kind.
func normal(key string, value any) any {
	switch v := value.(type) {
	case map[string]any:
		if key == "tree" {
			return "<tree>" // it depends on what holds a tree on this machine
		}
		delete(v, "contain") // why the next best way to hold trees was taken, where it was
		for k := range v {
			v[k] = normal(k, v[k])
		}
	case []any:
		for i := range v {
			v[i] = normal(key, v[i])
		}
	case json.Number:
		if fickle[key] {
			return "<number>"
		}
	case string:
		if fickle[key] && v != "" {
			return "<text>"
		}
		return who.ReplaceAllString(address.ReplaceAllString(moment.ReplaceAllString(v, "<time>"), "<address>"), "<who>")
	}
	return value
}

// pretty is JSON, normalised, with its keys in order.
func (c *cluster) pretty(text string) string {
	c.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var value any
	if err := d.Decode(&value); err != nil {
		c.Fatalf("%v: %s", err, text)
	}
	out, err := json.MarshalIndent(normal("", value), "", "  ")
	must.OK(c, err)
	return strings.NewReplacer(`\u003c`, "<", `\u003e`, ">").Replace(string(out))
}

// same compares with the file that is kept.
func (c *cluster) same(name, got string) {
	c.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		must.OK(c, os.WriteFile(file, []byte(got), 0o644))
		return
	}
	want, err := os.ReadFile(file)
	must.OK(c, err)
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		c.Errorf("%s (what is kept -, what is +):\n%s", file, diff)
	}
}

// znodes is the whole tree.
func (c *cluster) znodes() string {
	c.Helper()
	var b strings.Builder
	var walk func(at string)
	walk = func(at string) {
		data, stat, err := c.conn.Get(at)
		if errors.Is(err, zk.ErrNoNode) {
			return
		}
		must.OK(c, err)
		kind := "persistent"
		if stat.EphemeralOwner != 0 {
			kind = "ephemeral"
		}
		name := guid.ReplaceAllString(number.ReplaceAllString(session.ReplaceAllString(at, "<session>"), "n_<number>"), "/$1-<guid>")
		fmt.Fprintf(&b, "%s %s\n", name, kind)
		if len(data) > 0 {
			fmt.Fprintln(&b, c.pretty(string(data)))
		}
		children, _, err := c.conn.Children(at)
		must.OK(c, err)
		slices.Sort(children)
		for _, child := range children {
			walk(path.Join(at, child))
		}
	}
	walk(root)
	return b.String()
}

func (c *cluster) get(node, path string) string {
	c.Helper()
	answer, err := http.Get("http://" + c.http[node] + path)
	must.OK(c, err)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	must.OK(c, err)
	if answer.StatusCode != http.StatusOK {
		c.Fatalf("%s: %d %s", path, answer.StatusCode, body)
	}
	return string(body)
}

// metrics is the names, with types and labels, and no values.
func (c *cluster) metrics() string {
	all := map[string]bool{}
	for line := range strings.Lines(c.get("one", "/metrics")) {
		name := line[:max(0, strings.LastIndex(line, " "))]
		if strings.HasPrefix(line, "# TYPE ") {
			all[strings.TrimSpace(line)] = true
		} else if !strings.HasPrefix(line, "#") && !strings.HasPrefix(name, "go_") && !strings.HasPrefix(name, "process_") {
			all[label.ReplaceAllString(name, "$1")] = true
		}
	}
	maps.DeleteFunc(all, func(line string, _ bool) bool {
		return strings.HasPrefix(line, "# TYPE go_") || strings.HasPrefix(line, "# TYPE process_")
	})
	return strings.Join(slices.Sorted(maps.Keys(all)), "\n") + "\n"
}

func TestWhatScriptsRelyOnIsAsItWas(t *testing.T) {
	c := begin(t)
	c.settled()
	c.ask("pause", "held")
	c.ask("drain", "three", "--force", "--reason", "disks")
	c.ask("switchover", "plain", "--to", "two")
	kit.Until(t, kit.Soon, "one stands by again", func() bool {
		data, _, err := c.conn.Get(root + "/services/plain/members/one")
		return err == nil && strings.Contains(string(data), `"role":"standby"`)
	})
	kit.Until(t, kit.Soon, "one knows how its term ended", func() bool {
		return strings.Contains(c.get("one", "/api/v1/history?service=plain"), `"switchover"`)
	})
	kit.Until(t, kit.Soon, "the pause is followed", func() bool { return strings.Contains(c.ask("status", "--json"), `"paused"`) })
	c.same("znodes", c.znodes())
	if status := c.ask("status", "--json"); !strings.Contains(status, `"contain":`) {
		t.Errorf("the status does not tell how trees are held: %s", status)
	}
	c.same("status.json", c.pretty(c.ask("status", "--json")))
	c.same("history.json", c.pretty(c.ask("history", "plain", "--json")))
	c.same("http-status.json", c.pretty(c.get("one", "/api/v1/status")))
	c.same("http-history.json", c.pretty(c.get("one", "/api/v1/history?service=plain")))
	c.same("metrics", c.metrics())
}
