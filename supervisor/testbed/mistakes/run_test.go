package mistakes

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/must"
)

// fits waits until the status of a service has all the words, and until `status --check` has the exit code.
func fits(t *testing.T, server, service string, code int, words ...string) {
	t.Helper()
	var got answer
	kit.Until(t, kit.Soon, service+" shows "+strings.Join(words, ", "), func() bool {
		got = runs(t, "status", service, "--zk", server)
		return all(got.flat(), words)
	})
	got.wants(t, service, 0, words...)
	if got := runs(t, "status", service, "--check", "--zk", server); got.code != code {
		t.Errorf("%s: status --check ends with %d, want %d:\n%s", service, got.code, code, got.text)
	}
}

// What `status`, `status --check` and the log have of programs that cannot run.
func TestPrograms(t *testing.T) {
	t.Parallel()
	server, _ := server(t)
	const down, failing = 5, 4
	cases := []struct {
		name, keys string
		code       int
		status     []string
		log        []string
	}{
		{"no-binary", "command: [/no/such]", down, []string{"it could not start here: /no/such: no such file or directory.", "DOWN: no node can run it now."}, []string{"[WARN]", "/no/such: no such file or directory"}},
		{"folder", "command: [/etc]", down, []string{"it could not start here: /etc: is a directory."}, []string{"[WARN]", "/etc: is a directory"}},
		{"no-right", "command: [/etc/passwd]", down, []string{"it could not start here: /etc/passwd: permission denied: it is not executable (chmod +x makes it so)."}, []string{"[WARN]", "/etc/passwd: permission denied"}},
		{"no-user", "command: [sleep, '99'], user: nosuch", down, []string{"it could not start here: there is no user nosuch."}, []string{"[WARN]", "there is no user nosuch"}},
		{"no-folder", "command: [sleep, '99'], working_dir: /no/such", down, []string{"working_dir /no/such: no such file or directory."}, []string{"[WARN]", "working_dir /no/such"}},
		{"no-env", "command: [sleep, '99'], env_file: /no/such", down, []string{"env_file /no/such: no such file or directory."}, []string{"[WARN]", "env_file /no/such"}},
		{"no-log", "command: [sleep, '99'], log: {file: /no/such/x.log}", down, []string{"log.file: there is no folder /no/such: create it, or use /var/log/understudy."}, []string{"[WARN]", "there is no folder /no/such"}},
		{
			"no-promote", "command: [sleep, '99'], warm: {promote: {exec: /no/such}}", down,
			[]string{"it could not start here: promote: /no/such: no such file or directory."}, []string{"[WARN]", "promote: /no/such"},
		},
		{
			"slow", `command: [sleep, '99'], ready: {tcp: "127.0.0.1:9", timeout: 1m}`, failing, []string{"active", "starting", "not ready yet: ", "127.0.0.1:9: connection refused"},
			[]string{"program started"},
		},
		{
			"warm-slow", `command: [sleep, '99'], warm: {promote: {signal: USR1}}, ready: {tcp: "127.0.0.1:9", timeout: 1m}`, down,
			[]string{"its program is starting, not ready yet: ", "127.0.0.1:9: connection refused"}, []string{"once its program is ready"},
		},
		{
			"daemon", `command: [sh, -c, "sleep 99 & exit 0"]`, down, []string{"failed here", "the program ended: exit code 0. It tries again in", "A program that should keep running must stay in the foreground."},
			[]string{"[WARN]", "a program that should keep running must stay in the foreground"},
		},
		{
			"ill", `command: [sleep, '99'], health: {tcp: "127.0.0.1:9", interval: 300ms, failures: 3}, restart: {delay: 1m, max_delay: 1m, within: 1h}`, failing,
			[]string{"n1 is unhealthy, tcp 127.0.0.1:9: connection refused (failure 1 of 5, starts again after 1m0s)."}, []string{"[ERROR]", "unhealthy: tcp 127.0.0.1:9: connection refused", `failure="1 of 5"`, "next_start=1m0s"},
		},
		{
			"unready", `command: [sleep, '99'], ready: {tcp: "127.0.0.1:9", timeout: 5s}, restart: {delay: 1m, max_delay: 1m, within: 1h}`, failing,
			[]string{"n1 is unhealthy, the program is not ready within 5s: tcp 127.0.0.1:9: connection refused (failure 1 of 5"}, []string{"[ERROR]", "the program is not ready within 5s: tcp 127.0.0.1:9: connection refused"},
		},
		{
			"hook", `command: [sleep, '99'], hooks: {on_active: {command: [sh, -c, "echo no disk; exit 1"]}}, restart: {delay: 1m, max_delay: 1m, within: 1h}`, failing,
			[]string{"n1 is unhealthy, on_active failed: exit code 1: no disk (failure 1 of 2"}, []string{"[ERROR]", "on_active failed: exit code 1: no disk"},
		},
		{
			"crash", `command: [sh, -c, "kill -SEGV $$"], restart: {delay: 1m, max_delay: 1m, within: 1h}`, failing,
			[]string{"n1 is unhealthy, the program ended: killed by SIGSEGV (failure 1 of 5, starts again after 1m0s)."}, []string{"[WARN]", "program crashed", "SIGSEGV", `failure="1 of 5"`},
		},
		{
			"squatted", "command: [sleep, '99'], ready: {tcp: '" + server + "'}", 7, []string{"n1 active", "ok"},
			[]string{"[WARN]", "another program answers in place of this one", "address=" + server},
		},
		{"well", "command: [sleep, '99']", 7, []string{"n1 active", "ok"}, nil},
	}
	taken, agents := listens(t, ""), listens(t, "")
	secret := write(t, "secret", strings.Repeat("s", 32))
	text := fmt.Sprintf("node: n1\nzookeeper: {servers: [%q], lease: 5s, trusted_network: true}\n"+
		"http: {listen: %q, token_file: /no/such/token}\nfencing: {agent: {listen: %q, secret_file: %s}}\nnotify: {exec: [/no/such/mail]}\nservices:\n", server, taken, agents, secret)
	for _, c := range cases {
		text += fmt.Sprintf("  %s: {%s}\n", c.name, c.keys)
	}
	text += fmt.Sprintf("  says: {command: [sh, -c, 'echo no such table; exit 3'], log: {file: %s}}\n", filepath.Join(t.TempDir(), "says.log"))
	file := write(t, "u.yaml", text)
	n1 := start(t, "run", "--config", file)
	kit.Until(t, kit.Soon, "status shows the last lines of a program that failed", func() bool {
		return all(runs(t, "status", "says", "--config", file).flat(), []string{"exit code 3", "The last lines of its output on n1: no such table"})
	})
	for _, c := range cases {
		fits(t, server, c.name, c.code, c.status...)
		if c.log != nil {
			n1.logs(t, c.name, append(c.log, "service="+c.name)...)
		}
	}
	fits(t, server, "well", 7, "n1 cannot tell people what happens, because notify fails: ", "/no/such/mail",
		"n1 does not serve HTTP at "+taken+": address already in use. It tries again.")
	n1.logs(t, "a token that is not there", "[ERROR]", "no client can give orders", "key=http.token_file", "/no/such/token: no such file or directory")
	n1.logs(t, "a port that is taken", "[ERROR]", "cannot serve HTTP, trying again", "listen="+taken, "address already in use", "in=5s")
	n1.logs(t, "the agent's port", "[ERROR]", "the fencing agent cannot listen, trying again", "listen="+agents, "address already in use")
	if strings.Contains(n1.said(t), "writable=true") {
		t.Error("without a token HTTP takes orders")
	}
}

// endless is a service that runs on.
const endless = "services: {a: {command: [sleep, '100000']}}\n"

// run runs services with the longest session that the server grants.
func run(t *testing.T, server, node, more string) (*started, string) {
	t.Helper()
	file := write(t, node+".yaml", fmt.Sprintf("node: %s\nzookeeper: {servers: [%q], lease: 5s, trusted_network: true}\n%s", node, server, more))
	return start(t, "run", "--config", file), file
}

// What the log and `status` have where the cluster or the config are not as they should be.
func TestTheClusterAndTheFile(t *testing.T) {
	t.Parallel()
	server, dev := server(t)
	nowhere, _ := run(t, free(t), "nowhere", endless)
	n1, file := run(t, server, "n1", endless)
	active(t, server, "a", "n1")

	double, _ := run(t, server, "n1", endless) // the same name, elsewhere
	double.logs(t, "a name that is taken", "another supervisor", "n1")

	write := func(text string) { must.OK(t, os.WriteFile(file, []byte(text), 0o600)) }
	was, err := os.ReadFile(file)
	must.OK(t, err)
	for _, c := range []struct {
		name, text  string // "" removes the file
		log, status []string
	}{
		{
			"an error in a changed config", string(was) + "typo: 1\n", []string{"[ERROR]", filepath.Base(file) + ":4:1: typo: unknown key"},
			[]string{"n1 keeps its previous config: ", "typo: unknown key", "understudy check --config " + file},
		},
		{"a config that is removed", "", nil, []string{"n1 keeps its previous config: " + file + ": cannot be read: no such file or directory"}},
		{
			"a change that needs a restart", strings.Replace(string(was), "lease: 5s", "lease: 4s", 1) + "http: {listen: \"" + free(t) + "\"}\n", nil,
			[]string{"n1 has a new config: the change to zookeeper: and http: takes effect when understudy is restarted there."},
		},
		{"a config that stops everything", strings.Replace(string(was), endless, "services:\n", 1), []string{"[ERROR]", "has no services any more: nothing is stopped"}, nil},
	} {
		write(c.text)
		if c.text == "" {
			must.OK(t, os.Remove(file))
		}
		must.OK(t, n1.cmd.Process.Signal(syscall.SIGHUP))
		if c.log != nil {
			n1.logs(t, c.name, c.log...)
		}
		fits(t, server, "a", 7, c.status...)
	}

	conn, _, err := zk.Connect([]string{server}, 10*time.Second, zk.WithLogInfo(false))
	must.OK(t, err)
	defer conn.Close()
	must.OK(t, conn.AddAuth("digest", []byte("other:secret")))
	for _, theirs := range []string{"/others", "/others/services"} {
		_, err = conn.Create(theirs, nil, 0, zk.AuthACL(zk.PermAll))
		must.OK(t, err)
	}
	others := start(t, "run", "--zk", server, "--root", "/others", "--service", "c", "--", "sleep", "99")
	others.logs(t, "znodes of other credentials", "[ERROR]", "not authenticated", "zookeeper.auth")
	theirs := filepath.Join(t.TempDir(), "u.yaml")
	must.OK(t, os.WriteFile(theirs, []byte("node: n\nzookeeper: {servers: ["+server+"], root: /others}\nservices: {c: {command: [sleep, '99']}}\n"), 0o600))
	runs(t, "check", theirs, "--zk").wants(t, "check --zk, with other credentials", 2, "what is below /others belongs to other credentials: set zookeeper.auth")

	leftBehind(t, conn, "d", "h9")
	blocked, _ := run(t, server, "n2", "services: {d: {command: [sleep, '99'], fencing: {methods: [{exec: {command: [\"false\"]}}], on_failure: refuse}}}\n")
	blocked.logs(t, "a fencing that fails", "[ERROR]", "takeover blocked: the previous node's program is not proved dead, and nothing is started", "understudy status", "service=d")
	fits(t, server, "d", 5, "DOWN: the program may still run on h9", "understudy fence confirm d --node h9", "the previous node's program may be alive: exec failed: exit status 1.")
	runs(t, "switchover", "d", "--to", "n2", "--force", "--zk", server).wants(t, "a try that is blocked", 1, "n2 cannot take d: it failed, the previous node's program may be alive: exec failed: exit status 1 (see `understudy status d")

	nowhere.logs(t, "a ZooKeeper that is not there", "[WARN]", "no ZooKeeper server", "connection refused", "no program is started on this node until one answers")
	stood := kit.Stood(t)
	must.OK(t, dev.cmd.Process.Signal(syscall.SIGSTOP))
	defer func() { _ = dev.cmd.Process.Signal(syscall.SIGCONT) }()
	n1.logs(t, "a ZooKeeper that freezes", "[WARN]", "the ZooKeeper session is over", "ZooKeeper has acknowledged no write for too long")
	const early = time.Second // a tenth of the session
	if line := []string{"[WARN]", "ZooKeeper acknowledges nothing, the lease is ending", "left="}; !n1.has(t, line) {
		if still := stood(); still < early/2 {
			t.Errorf("a lease has ended, and no line has %q", line)
		}
	}
}

// leftBehind writes the breadcrumb of a node that does not answer any more, so that only a fencing method can prove its program dead.
func leftBehind(t *testing.T, conn *zk.Conn, service, node string) {
	t.Helper()
	folder := "/understudy/services/" + service
	_, err := conn.Create(folder, nil, 0, zk.WorldACL(zk.PermAll))
	must.OK(t, err)
	_, err = conn.Create(folder+"/ActiveBreadCrumb", []byte(`{"node": "`+node+`", "host": "`+node+`", "lease_ms": 2000, "since": "2020-01-01T00:00:00Z"}`), 0, zk.WorldACL(zk.PermAll))
	must.OK(t, err)
}

func TestWithoutRights(t *testing.T) {
	server, _ := server(t)
	file := write(t, "u.yaml", fmt.Sprintf("node: n1\nzookeeper: {servers: [%q], trusted_network: true}\n%s", server, endless))
	s := startCommand(t, unprivileged(t, "run", "--config", file))
	active(t, server, "a", "n1")
	for line := range strings.Lines(s.said(t)) {
		if len(line) > 400 {
			t.Errorf("a line of %d characters: %s", len(line), line)
		}
	}
	if n := strings.Count(s.said(t), "[WARN]"); n > 2 {
		t.Errorf("%d warnings:\n%s", n, s.said(t))
	}
}

// An alert tells what to do, and not only that something is wrong.
func TestTheAlertOfTwoActiveNodes(t *testing.T) {
	rules, err := exec.Command("grep", "-A12", "alert: UnderstudyTwoActive", "../../../examples/prometheus-rules.yml").Output()
	must.OK(t, err)
	for _, word := range []string{"understudy status", "token", "stop understudy"} {
		if !strings.Contains(string(rules), word) {
			t.Errorf("it has no %q:\n%s", word, rules)
		}
	}
}
