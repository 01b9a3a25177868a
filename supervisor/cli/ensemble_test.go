package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/hashicorp/go-hclog"

	"understudy/election"
	"understudy/supervisor/config"
	"understudy/supervisor/testbed/must"
)

func zookeeperFile(t *testing.T, servers string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "u.yaml")
	must.OK(t, os.WriteFile(file, []byte("node: n\nzookeeper: {servers: ["+servers+"], trusted_network: true}\nservices: {}\n"), 0o600))
	return file
}

func TestCheckLooksAtZooKeeper(t *testing.T) {
	web := httptest.NewServer(http.NotFoundHandler())
	defer web.Close()
	one, other := emptyCluster(t), emptyCluster(t)
	for name, c := range map[string]struct {
		servers   string
		code      int
		out, errs string
	}{
		"sound":         {one, 0, "zookeeper: " + one + ": 3.8.0, standalone, tick 2s, grants sessions of 4s to 40s\nwarning: ZooKeeper is one server: ", ""},
		"two ensembles": {one + "," + other, 2, "error: " + one + " and " + other + " are not servers of one ensemble", "understudy: ZooKeeper cannot be used: "},
		"web server":    {web.Listener.Addr().String(), 2, `answers, and is no ZooKeeper (it sent "HTTP/1.1 400")`, "understudy: ZooKeeper cannot be used: "},
		"nobody":        {"127.0.0.1:1", 3, "connection refused\n", "understudy: no ZooKeeper server can be reached: is ZooKeeper up"},
	} {
		code, out, errs := says(t, "check", zookeeperFile(t, c.servers), "--zk")
		if code != c.code || !strings.Contains(out, c.out) || !strings.HasPrefix(errs, c.errs) || (errs == "") != (code == 0) || strings.Count(errs, "\n") > 1 {
			t.Errorf("%s: code %d\n%s\n%s", name, code, out, errs)
		}
		code, out, _ = says(t, "check", "--zk", "--json", "--config", zookeeperFile(t, c.servers))
		var v struct {
			OK        bool
			ZooKeeper struct {
				Servers                 []struct{ Address string }
				Faults, Warnings, Notes []string
			}
		}
		if err := json.Unmarshal([]byte(out), &v); err != nil || code != c.code || v.OK != (code == 0) || len(v.ZooKeeper.Servers) == 0 || v.ZooKeeper.Warnings == nil {
			t.Errorf("%s: code %d, %v\n%s", name, code, err, out)
		}
	}
	if code, _, errs := says(t, "check", "--zk", "--effective", zookeeperFile(t, one)); code != 2 || !strings.Contains(errs, "--zk does not go with") {
		t.Errorf("code %d, %s", code, errs)
	}
}

// In a container that wraps a command there is no config file.
func TestCheckLooksAtZooKeeperWithoutAConfig(t *testing.T) {
	one := emptyCluster(t)
	t.Setenv("UNDERSTUDY_ZK", one)
	if code, out, errs := says(t, "check", "--zk"); code != 0 || !strings.Contains(out, "zookeeper: "+one+": 3.8.0, ") || errs != "" ||
		!strings.Contains(out, "note: a lost host is taken over after up to 5.7s: 2s of grace included\n") {
		t.Errorf("code %d\n%s\n%s", code, out, errs)
	}
	if code, out, _ := says(t, "check", "--zk", "--json"); code != 0 || !strings.Contains(out, `"address": "`+one+`"`) {
		t.Errorf("code %d\n%s", code, out)
	}
	if code, _, errs := says(t, "check", "--zk", one); code != 2 || !strings.Contains(errs, "--zk takes no servers") {
		t.Errorf("code %d, %s", code, errs)
	}
	if code, _, errs := says(t, "logs", "hello", "--zk", one); code != 2 || !strings.Contains(errs, "kubectl logs") {
		t.Errorf("code %d, %s", code, errs)
	}
	t.Setenv("UNDERSTUDY_ZK", "127.0.0.1:1")
	if code, _, errs := says(t, "check", "--zk"); code != 3 || !strings.Contains(errs, "can be reached") {
		t.Errorf("code %d, %s", code, errs)
	}
}

func TestCheckWarnsOfNodesWhoseLeasesDiffer(t *testing.T) {
	one := emptyCluster(t)
	conn, _, err := zk.Connect([]string{one}, 4*time.Second, zk.WithLogInfo(false))
	must.OK(t, err)
	defer conn.Close()
	for _, path := range []string{"/understudy", "/understudy/nodes", "/understudy/nodes/a", "/understudy/nodes/b"} {
		data := fmt.Sprintf(`{"lease_ms":%d}`, 1000*len(path)+int(path[len(path)-1]))
		if _, err := conn.Create(path, []byte(data), 0, zk.WorldACL(zk.PermAll)); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("UNDERSTUDY_ZK", one)
	if code, out, errs := says(t, "check", "--zk"); code != 0 || !strings.Contains(out, "warning: the leases of the nodes differ: 19.098s on b; 19.097s on a. ") {
		t.Errorf("code %d\n%s\n%s", code, out, errs)
	}
}

// ZooKeeper knows which nodes have, or had, a copy: with a fourth one, what was enough for three is not.
func TestCheckWarnsOfPositionsThatAreTooFewForTheKnownCopies(t *testing.T) {
	one := emptyCluster(t)
	conn, _, err := zk.Connect([]string{one}, 4*time.Second, zk.WithLogInfo(false))
	must.OK(t, err)
	defer conn.Close()
	known := (election.Paths{Root: "/understudy", Service: "redis"}).Known()
	made := ""
	for part := range strings.SplitSeq(strings.TrimPrefix(known, "/"), "/") {
		made += "/" + part
		if _, err := conn.Create(made, nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile("../../examples/redis-replicated.yaml")
	must.OK(t, err)
	file := filepath.Join(t.TempDir(), "u.yaml")
	must.OK(t, os.WriteFile(file, []byte(strings.ReplaceAll(string(text), "127.0.0.1:2181", one)), 0o600))
	for _, node := range []string{"db-1", "db-2", "db-3", "db-4"} {
		if _, err := conn.Create(known+"/"+node, nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
			t.Fatal(err)
		}
		_, out, errs := says(t, "check", "--zk", "--elsewhere", "--config", file, "--node", "db-1")
		if got := strings.Contains(out, "warning: redis: 2 positions of 4 copies show the newest data only where"); got != (node == "db-4") {
			t.Errorf("with %s: %s%s", node, out, errs)
		}
	}
}

func TestRunWarnsOnceOfADangerousZooKeeper(t *testing.T) {
	one, other := emptyCluster(t), emptyCluster(t)
	for servers, want := range map[string]int{one: 0, one + "," + other: 1} {
		c := config.Default()
		c.ZooKeeper.Servers, _ = config.ParseServers(servers)
		told := make(chan struct{}, 1)
		var text bytes.Buffer
		stop := tellEnsemble(c, nil, hclog.New(&hclog.LoggerOptions{Output: writerFunc(func(p []byte) (int, error) {
			defer func() { told <- struct{}{} }()
			return text.Write(p)
		})}))
		if want > 0 {
			select {
			case <-told:
			case <-time.After(ensemblePatience):
			}
		}
		stop()
		if got := strings.Count(text.String(), "dangerous setup of ZooKeeper"); got != want {
			t.Errorf("%s: %s", servers, text.String())
		}
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
