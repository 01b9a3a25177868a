package mistakes

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const (
	here   = "zookeeper: {servers: [\"127.0.0.1:2181\"], trusted_network: true}\n"
	sleeps = "services: {a: {command: [sleep, \"1\"]}}\n"
)

// service is a config of one service with these keys.
func service(keys string) string {
	return here + "services: {a: {command: [sleep, \"1\"], " + keys + "}}\n"
}

// zookeeper is a config with one more key of its zookeeper part.
func zookeeper(key string) string {
	return "zookeeper: {servers: [\"127.0.0.1:2181\"], " + key + "}\n" + sleeps
}

// What `check` prints of a file. %s in a line is the file's name; DIR in a text is a folder with files of secrets.
func TestConfigs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"open": 0o644, "plain": 0o600} {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(map[string]string{"open": "user:password", "plain": "password"}[name]), mode))
	}
	must(t, os.WriteFile(filepath.Join(dir, "more.yaml"), []byte(sleeps), 0o600))
	for i, c := range []struct {
		name, text string
		code       int
		want       string
	}{
		{"empty", "", 2, `%s:1:1: is empty: write at least zookeeper: {servers: ["zk1:2181", "zk2:2181", "zk3:2181"]} services: {NAME:`},
		{"only a comment", "# nothing\n", 2, "%s:1:1: is empty: write at least"},
		{"a key misspelt", here + "services: {a: {comand: [x]}}\n", 2, `%s:2:16: services.a.comand: unknown key (did you mean "command"?)`},
		{"a key of the top misspelt", here + "service: {}\n", 2, `%s:2:1: service: unknown key (did you mean "services"?)`},
		{"no unit", service(`stop_timeout: "10"`), 2, `services.a.stop_timeout: "10" has no unit: write 10s for seconds`},
		{"yes", zookeeper("trusted_network: yes"), 2, `zookeeper.trusted_network: "yes" must be true or false (did you mean "true"?)`},
		{"a tab", here + "\tservices:\n", 2, "%s:2:1: not YAML: a tab: indent with spaces"},
		{"two documents", here + sleeps + "---\nservices: {}\n", 2, "%s:3:1: a second document: a file holds one, remove what follows the line ---"},
		{"not UTF-8", "a: \xff\n", 2, "not UTF-8: the byte 0xff begins no character"},
		{"a pipe", here + "services: {a: {command: \"echo a | cat\"}}\n", 2, `no shell runs this, so "|" would be an argument: quote it, or write [sh, -c, ...]`},
		{"an open quote", here + "services: {a: {command: \"echo 'a\"}}\n", 2, "a single quote (') is not closed"},
		{"umask", service(`umask: "0999"`), 2, `services.a.umask: "0999" is not an umask: write it in octal, from 000 to 777, such as "027"`},
		{"a signal", service("stop_signal: TREM"), 2, `"TREM" is not a signal (did you mean "TERM"?)`},
		{"a limit", service("limits: {nofle: 5}"), 2, `services.a.limits.nofle: is not a limit (did you mean "nofile"?)`},
		{"the password itself", zookeeper("auth: \"digest:user:password\""), 2, "write {scheme: digest, file: ...} and put user:password into the file"},
		{"a relative path", service("working_dir: var/lib"), 2, `services.a.working_dir: "var/lib" must be an absolute path`},
		{"a port", "zookeeper: {servers: [\"zk1:99999\"]}\n" + sleeps, 2, "the port must be a number from 1 to 65535"},
		{"a root", zookeeper("root: here"), 2, `zookeeper.root: "here" must start with /`},
		{"a name", here + "services: {a/b: {command: [x]}}\n", 2, `"a/b" is not a name: letters, digits and . _ - @ : are allowed`},
		{"a service twice", here + "services:\n  a: {command: [x]}\n  a: {command: [y]}\n", 2, "%s:4:3: services.a: repeated: it was given on line 3"},
		{"a key twice", here + "services: {a: {command: [x], command: [y]}}\n", 2, "%s:2:30: services.a.command: repeated: it was given on line 2"},
		{"a server twice", "zookeeper: {servers: [zk1, \"zk1:2181\"]}\n" + sleeps, 2, "zookeeper.servers[1]: zk1:2181 is the same server as servers[0]: remove one"},
		{"a service in two files", here + "include: [DIR/more.yaml]\n" + sleeps, 2, "services.a: defined twice: it is at %s:3:12 too"},
		{"a secret that others read", zookeeper("auth: {scheme: digest, file: DIR/open}"), 0, "its mode 0644 lets others read it: chmod 600 DIR/open"},
		{"zookeeper: HOST", "zookeeper: zk1:2181\n" + sleeps, 2, `the value "zk1:2181" where a mapping (key: value) is expected: write {servers: ["zk1:2181"]}`},
		{"servers: HOST", "zookeeper: {servers: zk1:2181}\n" + sleeps, 2, `the value "zk1:2181" where a list is expected: write ["zk1:2181"]`},
		{"a list of services", here + "services: [a]\n", 2, "a list where a mapping (key: value) is expected: write {NAME: {command: [PROGRAM, ARGUMENT]}}"},
		{"a list of variables", service("env: [A=1]"), 2, "services.a.env: a list where a mapping (key: value) is expected: write {NAME: VALUE}"},
		{"methods without items", service("fencing: {methods: {agent: {}}}"), 2, `a mapping where a list is expected: write [{KEY: VALUE}], or "- " before each item`},
		{"indentation", here + "services:\n  a:\n    command: [x]\n   user: root\n", 2, "%s:5:4: not YAML: a key is expected here: does the indentation fit the lines above?"},
		{"an open brace", "zookeeper: {servers: [zk1:2181]\n" + sleeps, 2, `%s:1:12: not YAML: "{" is opened here and never closed`},
		{"the agent method without an agent", service("fencing: {methods: [agent: {}]}"), 2, "needs an agent here and on every other node: write fencing: {agent: {listen: ..., secret_file: ...}} at the top of the file"},
		{"delays", service("restart: {delay: 1m}"), 2, "max_delay 30s is shorter than delay 1m0s: write a shorter delay, or max_delay: 1m0s or more"},
		{"a slow health check", service(`restart: {within: 10s}, health: {tcp: "127.0.0.1:1", interval: 10s}`), 2, "so within 10s the service would never give up: make within longer, or delay or give_up_after smaller"},
		{"a short session", zookeeper("session_timeout: 500ms"), 2, "zookeeper.session_timeout: 500ms is too short"},
		{"a short session, what to write", zookeeper("session_timeout: 500ms"), 2, "write 1s or more"},
		{"a watchdog with a short session", "zookeeper: {servers: [\"zk1:2181\"], session_timeout: 2s}\nwatchdog: {mode: required}\n" + sleeps, 2, "that needs a session_timeout of 3s or more"},
		{"no services", here + "services:\n", 0, "warning: there are no services: nothing runs with this file, and a supervisor that has services keeps its previous config"},
		{"an empty mapping of services", here + "services: {}\n", 0, "warning: there are no services: nothing runs with this file"},
		{"health without a method", service("health: {interval: 1s}"), 0, "services.a.health: has no effect without a way to check: add exec:, http: or tcp:"},
		{"no such program", here + "services: {a: {command: [/no/such]}}\n", 0, `warning: %s:2:25: services.a.command: "/no/such": no such file or directory (on this machine)`},
		{"a program without the right to execute", here + "services: {a: {command: [/etc/passwd]}}\n", 0, `services.a.command: "/etc/passwd": permission denied (on this machine)`},
		{"no such user", service("user: nosuch"), 0, `services.a.user: there is no "nosuch" (on this machine)`},
		{"no such folder", service("working_dir: /no/such"), 0, `services.a.working_dir: "/no/such": no such file or directory (on this machine)`},
		{"no such env file", service("env_file: /no/such"), 0, "services.a.env_file: /no/such: cannot be read: no such file or directory (on this machine)"},
		{"no such secret", zookeeper("auth: {scheme: digest, file: /no/such}"), 2, "zookeeper.auth.file: /no/such: no such file or directory"},
		{"KILL to stop", service("stop_signal: KILL"), 0, "no program can catch KILL, so it never gets to stop cleanly: write TERM, INT or QUIT"},
		{"a secret without a colon", zookeeper("auth: {scheme: digest, file: DIR/plain}"), 2, "zookeeper.auth.file: DIR/plain: line 1 is not user:password"},
		{
			"servers that any client may reach", "zookeeper: {servers: [zk1]}\n" + sleeps, 0,
			"note: any client that reaches the ZooKeeper servers can stop a service, move it, or have two copies of it run (see /usr/share/doc/understudy/docs/security.md). " +
				"Keep other clients out with a firewall and set `trusted_network: true` in zookeeper, or set its auth",
		},
		{"nothing wrong", here + sleeps, 0, "ok: 1 service in 1 file"},
	} {
		file := write(t, fmt.Sprint("u", i, ".yaml"), strings.ReplaceAll(c.text, "DIR", dir))
		want := strings.ReplaceAll(strings.ReplaceAll(c.want, "%s", file), "DIR", dir)
		got := runs(t, "check", "--config", file)
		got.wants(t, c.name, c.code, want)
		if c.code == 2 && !strings.HasSuffix(got.text, "is refused: 1 error\n") {
			t.Errorf("%s: the last line does not tell that it is refused:\n%s", c.name, got.text)
		}
	}
}

// What is no file.
func TestFilesThatAreNone(t *testing.T) {
	for _, c := range []struct{ name, file, want string }{
		{"a folder as the config", t.TempDir(), "cannot be read: it is a directory"},
		{"a config that is missing", "/no/such.yaml", "cannot be read: no such file or directory"},
		{"a device as the config", "/dev/null", "cannot be read: it is not a regular file"},
	} {
		runs(t, "check", "--config", c.file).wants(t, c.name, 2, c.file+": "+c.want)
	}
	file := write(t, "u.yaml", here+sleeps)
	must(t, os.Chmod(file, 0o666))
	refused := 2
	if os.Geteuid() != 0 { // whom it gives no rights that others lack
		refused = 0
	}
	runs(t, "check", "--config", file).wants(t, "a config that others write to", refused, "its mode 0666 lets others write to it: chmod 644 "+file)
}

func TestAnotherUserNeedsRoot(t *testing.T) {
	cmd := unprivileged(t, "check", "--config", write(t, "u.yaml", service("user: daemon")))
	out, err := cmd.CombinedOutput()
	must(t, err)
	answer{0, string(out)}.wants(t, "user: daemon", 0, `services.a.user: only a supervisor that runs as root can run a program as "daemon" (on this machine)`)
}
