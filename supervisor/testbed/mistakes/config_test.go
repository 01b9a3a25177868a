package mistakes

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"understudy/supervisor/testbed/must"
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

// What `check` prints of a file; what it says of each error is in supervisor/config/testdata/broken. %s in a line is the file's name; DIR
// in a text is a folder with files of secrets.
func TestConfigs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"open": 0o644, "plain": 0o600} {
		must.OK(t, os.WriteFile(filepath.Join(dir, name), []byte(map[string]string{"open": "user:password", "plain": "password"}[name]), mode))
	}
	must.OK(t, os.WriteFile(filepath.Join(dir, "more.yaml"), []byte(sleeps), 0o600))
	for i, c := range []struct {
		name, text string
		code       int
		want       string
	}{
		{"empty", "", 2, `%s:1:1: is empty: write at least zookeeper: {servers: ["zk1:2181", "zk2:2181", "zk3:2181"]} services: {NAME:`},
		{"a key misspelt", here + "services: {a: {comand: [x]}}\n", 2, `%s:2:16: services.a.comand: unknown key (did you mean "command"?)`},
		{"a service in two files", here + "include: [DIR/more.yaml]\n" + sleeps, 2, "services.a: defined twice: it is at %s:3:12 too"},
		{"a secret that others read", zookeeper("auth: {scheme: digest, file: DIR/open}"), 0, "its mode 0644 lets others read it: chmod 600 DIR/open"},
		{"no services", here + "services:\n", 0, "warning: there are no services: nothing runs with this file, and a supervisor that has services keeps its previous config"},
		{"an empty mapping of services", here + "services: {}\n", 0, "warning: there are no services: nothing runs with this file"},
		{"no such program", here + "services: {a: {command: [/no/such]}}\n", 0, `warning: %s:2:25: services.a.command: "/no/such": no such file or directory (on this machine)`},
		{"a program without the right to execute", here + "services: {a: {command: [/etc/passwd]}}\n", 0, `services.a.command: "/etc/passwd": permission denied: it is not executable (chmod +x makes it so) (on this machine)`},
		{"a variable before the program", here + "services: {a: {command: LANG=C sleep 1}}\n", 0, `"LANG=C" is not in PATH: set a variable in env, not before the program (on this machine)`},
		{"a line as one word of a list", here + "services: {a: {command: ['sleep 1']}}\n", 0, `"sleep 1" is not in PATH: all of it is taken for the program's name. Write each word as an item of the list`},
		{"a mount without its folder", here + "services: {a: {processes: [{name: m, mount: {device: /dev/null, directory: /no/such, type: ext4}}]}}\n", 0, "mount: there is no directory /no/such: create it (on this machine)"},
		{"a program as the log", service("log: {file: /bin/sh}"), 0, "warning: %s:2:51: services.a.log.file: \"/bin/sh\" looks like no log, and the program's output would be added to it: name another file"},
		{"no such user", service("user: nosuch"), 0, `services.a.user: there is no "nosuch" (on this machine)`},
		{"no such folder", service("working_dir: /no/such"), 0, `services.a.working_dir: "/no/such": no such file or directory (on this machine)`},
		{"no such env file", service("env_file: /no/such"), 0, "services.a.env_file: /no/such: cannot be read: no such file or directory (on this machine)"},
		{"no such secret", zookeeper("auth: {scheme: digest, file: /no/such}"), 2, "zookeeper.auth.file: /no/such: no such file or directory"},
		{"a watchdog that is none", here + "watchdog: {device: /dev/null, mode: required}\n" + sleeps, 0, "watchdog.device: /dev/null is no watchdog: name one such as /dev/watchdog (on this machine)"},
		{"a number of no user", service("user: 54321"), 0, "services.a.user: no user has the number 54321, so HOME is / (on this machine)"},
		{"a glob that finds nothing", here + "include: [DIR/*.yml]\n" + sleeps, 0, `include[0]: no file matches "DIR/*.yml"`},
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
		if strings.Contains(got.text, "is refused") {
			t.Errorf("%s: one error is told twice:\n%s", c.name, got.text)
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
	must.OK(t, os.Chmod(file, 0o666))
	refused := 2
	if os.Geteuid() != 0 { // whom it gives no rights that others lack
		refused = 0
	}
	runs(t, "check", "--config", file).wants(t, "a config that others write to", refused, "its mode 0666 lets others write to it: chmod 644 "+file)
}

func TestAnotherUserNeedsRoot(t *testing.T) {
	cmd := unprivileged(t, "check", "--config", write(t, "u.yaml", service("user: daemon")))
	out, err := cmd.CombinedOutput()
	must.OK(t, err)
	answer{0, string(out)}.wants(t, "user: daemon", 0, `services.a.user: only a supervisor that runs as root can run a program as "daemon" (on this machine)`)
}
