package mistakes

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"understudy/supervisor/child/journal"
	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/must"
)

// What a command line prints that cannot be obeyed. ZK is the server's address, and n1 runs the services a and b there.
func TestCommandLines(t *testing.T) {
	t.Parallel()
	zk, _ := server(t)
	web, secret := free(t), write(t, "token", strings.Repeat("t", 32))
	file := write(t, "u.yaml", fmt.Sprintf("node: n1\nzookeeper: {servers: [%q], lease: 5s, trusted_network: true}\nhttp: {listen: %q, token_file: %s}\n"+
		"services: {a: {command: [sleep, '1000']}, b: {command: [sleep, '1000']}}\n", zk, web, secret))
	start(t, "run", "--config", file)
	active(t, zk, "a", "n1")
	active(t, zk, "b", "n1")
	noFile := 1 // the exit code of `logs` where no program has a log file
	if journal.Runs() {
		noFile = 0
	}
	silent, page := listens(t, ""), listens(t, "HTTP/1.1 400 Bad Request\r\n\r\n")
	tls := write(t, "tls.yaml", fmt.Sprintf("zookeeper: {servers: [%q], tls: {server_name: x}}\n%s", zk, sleeps))
	for _, c := range []struct {
		line string
		code int
		want []string
	}{
		{"run --config CONFIG -- sleep 1", 2, []string{"either `--config FILE` or `-- COMMAND`, not both"}},
		{"run --zk ZK --service a", 2, []string{"nothing to run: say `understudy run --zk HOSTS -- COMMAND`, or `--config FILE`"}},
		{"status nosuch --zk ZK", 1, []string{`no service "nosuch"; there is: a, b`}},
		{"drain a --zk ZK", 1, []string{`no node "a"; there is: n1`, "a is a service: `understudy stop a --zk ZK` stops it, and `understudy switchover a"}},
		{"stop n1 --zk ZK", 1, []string{`no service "n1"; there is: a, b`, "n1 is a node: `understudy status --node n1 --zk ZK` shows its services, and `understudy drain n1"}},
		{"switchover a n1 --zk ZK", 2, []string{"switchover takes one service: if n1 is a node, write `understudy switchover a --to n1`"}},
		{"status a n1 --zk ZK", 2, []string{"status takes one service at most: if n1 is a node, write `understudy status a --node n1`"}},
		{"restart a b c --zk ZK", 2, []string{"restart takes one service (see `understudy restart --help`)"}},
		{"check --zk=ZK", 2, []string{"--zk takes no servers: it asks those of a config file, or without one those in UNDERSTUDY_"}},
		{"check --zk localhost", 2, []string{"localhost is no file, and --zk takes no servers"}},
		{"explain --gap", 2, []string{"unknown flag: --gap: words that look like a flag follow `--`, and `--help` of a command explains its flags"}},
		{"explain <19.3s", 1, []string{"no row of docs/operations.md fits these words", "flags and columns are explained by `--help` of their command"}},
		{"switchover a --to nosuch --zk ZK", 1, []string{`no node "nosuch"; there is: n1`}},
		{"fence confirm a --node n1 --yes --zk ZK", 1, []string{"refused, a session is open: n1 holds the lock of a", "Stop its supervisor instead. If its host is off, repeat this in 10s"}},
		{"fence confirm a --node n2 --yes --zk ZK", 1, []string{`no node "n2"; there is: n1 (did you mean "n1"?)`}},
		{"status --timeout 2s --zk 127.0.0.1:1", 3, []string{"no ZooKeeper server of 127.0.0.1:1 answers", "connection refused (is ZooKeeper up, and is --zk right?)"}},
		{"status --timeout 500ms --zk no-such-host.invalid", 3, []string{"no-such-host.invalid:2181", "(is ZooKeeper up, and is --zk right?)"}},
		{"status --timeout 500ms --zk SILENT", 3, []string{"answers: neither an answer nor a refusal came (is ZooKeeper up, and is --zk right?)"}},
		{"status --timeout 2s --zk PAGE", 3, []string{`PAGE answers, and is no ZooKeeper (it sent "HTTP/1.1 400")`}},
		{"status --timeout 2s --config TLS", 3, []string{"TLS with ZK: it hung up (is this the secure port?)", "is TLS right?"}},
		{"status --root /other --zk ZK", 0, []string{"Nothing of Understudy is below /other on ZK."}},
		{"logs a --zk ZK", 2, []string{"without a config the output is in the supervisor's own log: see `journalctl`, `docker logs` or `kubectl logs`"}},
		{"logs a --config CONFIG", noFile, []string{"a has no log file, its output goes where the supervisor's own goes: `journalctl -t a -n 100` under systemd"}},
		{"sweep", 1, []string{"use this in ExecStopPost= of a unit with Delegate=yes"}},
	} {
		put := strings.NewReplacer("ZK", zk, "CONFIG", file, "SILENT", silent, "PAGE", page, "TLS", tls)
		if strings.Contains(c.line, "--config TLS") {
			for i, want := range c.want {
				c.want[i] = strings.ReplaceAll(want, "is TLS right", "is "+tls+" right")
			}
			put = strings.NewReplacer("config TLS", "config "+tls, "with ZK", "with "+zk)
		}
		var want []string
		for _, w := range c.want {
			want = append(want, put.Replace(w))
		}
		got := runs(t, strings.Fields(put.Replace(c.line))...)
		got.wants(t, c.line, c.code, want...)
		if strings.Count(got.text, "understudy: ") > 1 {
			t.Errorf("%s: more than one line of errors:\n%s", c.line, got.text)
		}
	}
	if _, err := os.Stat("/etc/understudy/understudy.yaml"); err != nil {
		runs(t, "status").wants(t, "no ZooKeeper is named", 2, "--zk is missing: give host:port[,host:port...], set UNDERSTUDY_ZK, or name a file with --config (/etc/understudy/understudy.yaml does not exist)")
	}

	hour := start(t, "run", "--zk", zk, "--service", "hour", "--lease", "1m", "--", "sleep", "1000")
	hour.logs(t, "a lease that is longer than any session", "[WARN]", "grants sessions that are shorter than the lease", "granted=10s lease=1m0s")

	failing := write(t, "n2.yaml", fmt.Sprintf("node: n2\nzookeeper: {servers: [%q], trusted_network: true}\n"+
		"services: {a: {command: [sh, -c, \"exit 7\"], restart: {give_up_after: 1}}}\n", zk))
	start(t, "run", "--config", failing)
	kit.Until(t, kit.Soon, "n2 stands by", func() bool {
		return regexp.MustCompile(`n2\s+standby`).MatchString(runs(t, "status", "a", "--zk", zk).text)
	})
	runs(t, "switchover", "a", "--to", "n2", "--zk", zk).wants(t, "a switchover to a node that fails", 1, "a is active again on n1: n2", "failed, the program ended: exit code 7")
	runs(t, "fence", "confirm", "a", "--node", "n2", "--yes", "--zk", zk).wants(t, "fence confirm of a node that is not pending", 0, "Nothing to confirm: no fencing of n2 is pending for a: n1 is active.")

	unnamed := write(t, "unnamed.yaml", fmt.Sprintf("zookeeper: {servers: [%q], trusted_network: true}\n%s", zk, sleeps))
	kit.Until(t, kit.Soon, "ZooKeeper answers quickly", func() bool { // else logs does not wait for it
		got := runs(t, "logs", "a", "--config", unnamed)
		got.wants(t, "logs of a node with another name than its host", noFile, "a has no log file, its output goes where the supervisor's own goes")
		return all(got.flat(), []string{"a is active on n1 now, another node of this host: name its config with --config if it is not " + unnamed})
	})

	slow := write(t, "n3.yaml", fmt.Sprintf("node: n3\nzookeeper: {servers: [%q], trusted_network: true}\n"+
		"services: {b: {command: [sleep, '1000'], hooks: {on_active: {command: [sleep, '1']}}}}\n", zk))
	start(t, "run", "--config", slow)
	kit.Until(t, kit.Soon, "n3 stands by", func() bool {
		return regexp.MustCompile(`n3\s+standby`).MatchString(runs(t, "status", "b", "--zk", zk).text)
	})
	got := runs(t, "switchover", "b", "--to", "n3", "--zk", zk)
	got.wants(t, "a switchover to a node with a slow hook", 0, "Done: b is active on n3, after")
	if !regexp.MustCompile(`\(gap \d\S+, of which startup \d\S+, of which on_active [1-9]`).MatchString(got.flat()) {
		t.Errorf("it is not told how long nothing ran, and what took that long:\n%s", got.text)
	}

	token := "Bearer " + strings.Repeat("t", 32)
	order, post := "/api/v1/services/a/switchover", http.MethodPost
	for _, c := range []struct {
		name, method, path, token, body string
		code                            int
		want                            string
	}{
		{"no token", post, order, "", "", 401, "a token is needed: Authorization: Bearer TOKEN"},
		{"a wrong token", post, order, "Bearer wrong", "", 401, "wrong token"},
		{"a form instead of JSON", post, order, token, "to=h9", 400, "the body must be a JSON object such as {"},
		{"an unknown key", post, order, token, `{"target": "n2"}`, 400, `unknown key "target"`},
		{"an unknown node", post, order, token, `{"to": "h9"}`, 404, `no node "h9"; there is: n1, n2`},
		{"an unknown order", post, "/api/v1/services/a/nosuch", token, "{}", 404, "nosuch"},
		{"an unknown service", http.MethodGet, "/active/nosuch", "", "", 404, `no service "nosuch" on this node`},
		{"an unknown host", http.MethodGet, "/", "status.example.com", "", 421, "add that name to http.hosts in the config, or ask by an IP address"},
	} {
		r, err := http.NewRequestWithContext(t.Context(), c.method, "http://"+web+c.path, strings.NewReader(c.body))
		must.OK(t, err)
		if r.Header.Set("Authorization", c.token); c.code == 421 {
			r.Host = c.token
		}
		answer, err := http.DefaultClient.Do(r)
		must.OK(t, err)
		text, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		must.OK(t, err)
		if answer.StatusCode != c.code || !strings.Contains(strings.ReplaceAll(string(text), `\"`, `"`), c.want) || strings.Contains(string(text), "literal") {
			t.Errorf("%s: %d %s", c.name, answer.StatusCode, text)
		}
	}
}

// active waits until a node is active.
func active(t *testing.T, zk, service, node string) {
	t.Helper()
	kit.Until(t, kit.Soon, node+" is active for "+service, func() bool {
		return strings.Contains(runs(t, "status", service, "--check", "--zk", zk).text, "active on "+node)
	})
}
