package config

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const oneFile = `
zookeeper: {servers: [zk1]}
node:
  db-1: {http: {listen: "192.0.2.1:8437"}, fencing: {agent: {advertise: "192.0.2.1:8438"}}}
  db-2: {watchdog: {mode: required}}
http: {listen: "127.0.0.1:8437", hosts: [web.example]}
fencing: {agent: {listen: ":8438", secret_file: /secret}}
defaults: {env: {TZ: UTC}, restart: {delay: 2s}}
services:
  one:
    command: [all]
    env: {A: "1", B: "2"}
    ready: {tcp: ":80"}
    nodes:
      db-1: {priority: 20, env: {B: x, C: "3"}, restart: {within: 5m}}
      db-3: {eligible: false, command: [other], ready: {notify: true}}
      db-4:
  two:
    user: redis
    processes:
      - {name: a, command: a}
      - {name: b, command: b, user: root}
    nodes:
      db-1: {user: nobody}
      db-2: {command: single}
`

func nodeConfig(t *testing.T, src, node string) LoadResult {
	t.Helper()
	l := newLoader("u.yaml", disk{})
	l.node = node
	return l.load([]byte(src))
}

// ofNode is what one file says for a node.
func ofNode(t *testing.T, src, node string) *Config {
	t.Helper()
	r := nodeConfig(t, src, node)
	if r.Err() != nil {
		t.Fatal(r.Err())
	}
	return r.Config
}

func TestOneFileServesAllNodes(t *testing.T) {
	n1, n2, n3, other := ofNode(t, oneFile, "db-1"), ofNode(t, oneFile, "db-2"), ofNode(t, oneFile, "db-3"), ofNode(t, oneFile, "elsewhere")

	if n1.Node != "db-1" || n1.HTTP.Listen != "192.0.2.1:8437" || !slices.Equal(n1.HTTP.Hosts, []string{"web.example"}) || n1.Watchdog.Mode != WatchdogOff {
		t.Errorf("%+v", n1)
	}
	if a := n1.Fencing.Agent; a.Listen != ":8438" || a.SecretFile != "/secret" || a.Advertise != "192.0.2.1:8438" || other.Fencing.Agent.Advertise != "" {
		t.Errorf("%+v, elsewhere %+v", a, other.Fencing.Agent)
	}
	if n2.Watchdog.Mode != WatchdogRequired || n2.HTTP.Listen != "127.0.0.1:8437" || other.Node != "elsewhere" || other.Watchdog.Mode != WatchdogOff {
		t.Errorf("%+v, elsewhere %+v", n2, other)
	}

	one := func(c *Config) (Service, Program) { return c.Services["one"], c.Services["one"].Processes[0].Program }
	s, p := one(n1)
	if diff := cmp.Diff(map[string]string{"TZ": "UTC", "A": "1", "B": "x", "C": "3"}, p.Env); diff != "" || s.Priority != 20 || !s.Eligible || p.Ready.TCP != ":80" {
		t.Errorf("%s %+v", diff, s)
	}
	if s.Restart.Delay.String() != "2s" || s.Restart.Within.String() != "5m0s" {
		t.Errorf("%+v", s.Restart)
	}
	if s, p := one(n3); s.Eligible || p.Command[0] != "other" || !p.Ready.Notify || p.Ready.TCP != "" || p.Env["B"] != "2" {
		t.Errorf("%+v", s)
	}
	if s, p := one(other); s.Priority != 0 || p.Env["B"] != "2" || p.Env["C"] != "" || s.Restart.Within.String() != "2m0s" {
		t.Errorf("an override shows elsewhere: %+v", s)
	}
	if diff := cmp.Diff(other.Services["one"], ofNode(t, oneFile, "db-4").Services["one"]); diff != "" {
		t.Error(diff)
	}

	users := func(c *Config) (list []string) {
		for _, p := range c.Services["two"].Processes {
			list = append(list, p.Name+" "+p.Command[0]+" "+p.User)
		}
		return list
	}
	for _, c := range []struct {
		of   *Config
		want []string
	}{{n1, []string{"a a nobody", "b b root"}}, {n2, []string{"main single redis"}}, {other, []string{"a a redis", "b b root"}}} {
		if got := users(c.of); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.of.Node, got, c.want)
		}
	}
	for _, c := range []*Config{n1, n2, n3, other} {
		checkRoundTrip(t, c)
		if err := c.Validate(); err != nil {
			t.Error(err)
		}
	}
}

func TestAProcessOfTheDefaultsTakesWhatANodeOverrides(t *testing.T) {
	const src = "node: a\nzookeeper: {servers: [z]}\ndefaults: {processes: [{name: p, command: x}], user: u}\nservices: {s: {nodes: {b: {user: v}}}}\n"
	if got := ofNode(t, src, "b").Services["s"].Processes[0]; got.User != "v" || got.Name != "p" {
		t.Errorf("%+v", got)
	}
	if got := ofNode(t, src, "").Services["s"].Processes[0]; got.User != "u" {
		t.Errorf("%+v", got)
	}
}

// What is wrong for another node is as wrong here. It is told once, where it stands.
func TestEachNodeFindsTheErrorsOfAll(t *testing.T) {
	const src = `node:
  n1: {htp: {listen: ":1"}}
  n2: {http: {listen: nonsense}, priority: 3}
  n3: {zookeeper: {root: /x}}
  -n4: {}
zookeeper: {servers: [zk1]}
defaults: {nodes: {n1: {priority: 1}}}
services:
  a:
    command: x
    stop_timeout: -1s
    nodes:
      n1: {priorty: 5}
      n2: {priority: high, nodes: {}}
      n3: {restart: {give_up_after: -2}}
      n4: {processes: [{name: p}]}
      n5: {priority: 1}
  b: {nodes: {n1: {nice: 50}, n2: {command: y}, .n: {}}}
`
	want := strings.Split(strings.TrimSpace(`
u.yaml:2:8: node.n1.htp: unknown key (did you mean "http"?)
u.yaml:3:23: node.n2.http.listen: "nonsense" is not host:port, such as 127.0.0.1:6379 or [::1]:6379
u.yaml:3:34: node.n2.priority: unknown key: it belongs to a service, under services.NAME.nodes.n2
u.yaml:4:8: node.n3.zookeeper: unknown key: it is the same for all nodes, at the top of the file
u.yaml:5:3: node.-n4: "-n4": a name must not start with -
u.yaml:7:12: defaults.nodes: unknown key: it belongs to a single service
u.yaml:11:19: services.a.stop_timeout: must not be negative: -1s
u.yaml:13:12: services.a.nodes.n1.priorty: unknown key (did you mean "priority"?)
u.yaml:14:22: services.a.nodes.n2.priority: "high" is not a whole number
u.yaml:14:28: services.a.nodes.n2.nodes: unknown key: it belongs to a single service
u.yaml:15:37: services.a.nodes.n3.restart.give_up_after: -2 is not a number from 1 to 10000, or 0 for never
u.yaml:16:24: services.a.nodes.n4.processes[0].command: missing: say which program to run
u.yaml:18:3: services.b.command: missing: say which program to run
u.yaml:18:26: services.b.nodes.n1.nice: 50 is not a number from -20 to 19
u.yaml:18:49: services.b.nodes.".n": ".n": a name must not start with a dot
`), "\n")
	for _, node := range []string{"n1", "n2", "elsewhere"} {
		var got []string
		for _, f := range nodeConfig(t, src, node).Faults {
			got = append(got, f.String())
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("on %s: %s", node, diff)
		}
	}
}

// Agents that each node has of its own are as good as one at the top of the file.
func TestEachNodeMayHaveAnAgentOfItsOwn(t *testing.T) {
	const src = `node:
  n1: {fencing: {agent: {listen: "192.0.2.1:8438", secret_file: /secret}}}
  n2: {http: {listen: ":1"}}
zookeeper: {servers: [zk1]}
services:
  a: {command: x, on_zookeeper_loss: failsafe, fencing: {methods: [agent: {}]}}
`
	lacks := []string{
		"u.yaml:6:38: services.a.on_zookeeper_loss: failsafe asks the other nodes through their fencing agents: set fencing.agent, here and on all nodes",
		"u.yaml:6:75: services.a.fencing.methods[0].agent: needs an agent here and on every other node: write fencing: {agent: {listen: ..., secret_file: ...}} at the top of the file",
	}
	both := strings.Replace(src, `http: {listen: ":1"}`, `fencing: {agent: {listen: "192.0.2.2:8438", secret_file: /secret}}`, 1)
	for _, c := range []struct {
		src, node string
		want      []string
	}{{both, "n1", nil}, {both, "n2", nil}, {both, "elsewhere", lacks}, {src, "n1", lacks}, {src, "n2", lacks}} {
		var got []string
		for _, f := range nodeConfig(t, c.src, c.node).Faults {
			got = append(got, f.String())
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("on %s: %s", c.node, diff)
		}
	}
}

func TestANodeThatIsSpeltOtherwiseIsMentioned(t *testing.T) {
	for _, c := range []struct{ src, node, want string }{
		{strings.Replace(oneFile, "db-2: {command", "db2: {command", 1), "db-1", `services.two.nodes.db2: node: has no such node (did you mean "db-2"?)`},
		{oneFile, "DB-1.example.com", `node: this node is "DB-1.example.com", and what differs on single nodes is for "db-1": write the same name`},
		{oneFile, "db-5", ""},
	} {
		r := nodeConfig(t, c.src, c.node)
		if got := r.Warnings.Error(); c.want == "" && got != "" || !strings.Contains(got, c.want) || len(r.Warnings) > 1 {
			t.Errorf("on %s: %v", c.node, got)
		}
	}
}

// Nodes that run the same files have the same sum, wherever the files are.
func TestTheSumIsOfAllFiles(t *testing.T) {
	write := func(main, part string) string {
		r := Read(filepath.Join(tree(t, map[string]string{"u.yaml": main, "part.yaml": part}), "u.yaml"), "n")
		if r.Err() != nil {
			t.Fatal(r.Err())
		}
		return r.Sum
	}
	const main, part = "zookeeper: {servers: [z]}\ninclude: [part.yaml]\nservices: {a: {command: x}}\n", "services: {b: {command: x}}\n"
	first := write(main, part)
	if first == "" || first != write(main, part) {
		t.Errorf("%q is not the sum of the same files elsewhere", first)
	}
	if first == write(main+"\n", part) || first == write(main, part+"# x\n") {
		t.Error("another file has the same sum")
	}
}

// A key that a node does not override is read as for all, also where it is a mapping that has to be whole.
func TestALimitWithTwoSidesHoldsForANodeThatOverridesAnotherKey(t *testing.T) {
	c := ofNode(t, "node: n\nzookeeper: {servers: [zk1]}\nservices: {s: {command: x, limits: {nproc: {soft: 1, hard: 2}}, nodes: {a: {priority: 3}}}}\n", "a")
	if s := c.Services["s"]; s.Priority != 3 || s.Processes[0].Limits["nproc"] != (Limit{Soft: 1, Hard: 2}) {
		t.Errorf("%+v", s)
	}
}

// However many nodes a file names, it is not read for longer than its size explains.
func TestTooManyValuesForAllNodesAreRefused(t *testing.T) {
	var keys, nodes strings.Builder
	for i := range 500 {
		fmt.Fprintf(&keys, "E%d: x, ", i)
		fmt.Fprintf(&nodes, "n%d: {priority: 1}, ", i)
	}
	src := "node: n\nzookeeper: {servers: [zk1]}\ndefaults: {env: &env {" + keys.String() + "}}\n" +
		"services: {s: {command: x, env: {<<: [" + strings.Repeat("*env, ", 100) + "]}, nodes: {" + nodes.String() + "}}}\n"
	if r := nodeConfig(t, src, "n1"); r.Err() == nil || !strings.Contains(r.Err().Error(), "expands to too many values") {
		t.Error(r.Err())
	}
}
