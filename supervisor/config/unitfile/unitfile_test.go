package unitfile_test

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"understudy/supervisor/config"
	"understudy/supervisor/config/unitfile"
)

var update = flag.Bool("update", false, "write what the code makes of the units")

// machine is a root with units. One is an alias, one is masked.
func machine(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	units := filepath.Join(root, "etc/systemd/system")
	for _, err := range []error{
		os.CopyFS(root, os.DirFS("testdata/root")),
		os.Symlink("/lib/systemd/system/redis-server.service", filepath.Join(units, "redis.service")),
		os.Symlink(os.DevNull, filepath.Join(units, "gone.service")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// Units as Debian has them, and one that has what else there is. What becomes of each is a config that `check` accepts.
func TestUnitsBecomeConfigs(t *testing.T) {
	root := machine(t)
	for _, name := range []string{"nginx", "redis", "postgresql@15-main", "haproxy.service", "memcached", "mosquitto", "prometheus", root + "/lib/systemd/system/odd.service"} {
		unit, err := unitfile.Load(root, name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		text, err := unit.YAML()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		text = strings.ReplaceAll(text, root, "")
		golden := filepath.Join("testdata", strings.TrimSuffix(unit.Name, ".service")+".yaml")
		if *update {
			if err := os.WriteFile(golden, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), text); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		whole := filepath.Join(t.TempDir(), "u.yaml")
		if err := os.WriteFile(whole, []byte("zookeeper: {servers: [\"zk1:2181\"]}\n"+text), 0o600); err != nil {
			t.Fatal(err)
		}
		if r := config.Read(whole, ""); r.Err() != nil {
			t.Errorf("%s: check refuses it: %v", name, r.Err())
		}
	}
}

func TestUnitsThatRunNothing(t *testing.T) {
	root := machine(t)
	for name, want := range map[string]string{
		"postgresql": "Type=oneshot", "gone": "is masked by", "nothing": "there is no unit nothing.service", "ssh.socket": "is not a service",
		"/nowhere/x.service": "no such file", "/dev/zero": "is not a regular file",
	} {
		unit, err := unitfile.Load(root, name)
		if err == nil {
			_, err = unit.YAML()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, not %q", name, err, want)
		}
	}
}

func TestDaemonsStayInTheForeground(t *testing.T) {
	for _, c := range []struct{ given, want string }{
		{"/usr/sbin/nginx", "/usr/sbin/nginx -g|daemon off;"},
		{"nginx -g|daemon off;", "nginx -g|daemon off;"},
		{"nginx -g|pid /x;daemon off;", "nginx -g|pid /x;daemon off;"},
		{"redis-server /etc/redis.conf", "redis-server /etc/redis.conf --daemonize no"},
		{"redis-server --daemonize yes --port 1", "redis-server --daemonize no --port 1"},
		{"memcached -d -m 64", "memcached -m 64"},
		{"haproxy -D -f x", "haproxy -f x -db"},
		{"haproxy -Ws -f x", "haproxy -Ws -f x"},
		{"httpd -DFOREGROUND", "httpd -DFOREGROUND"},
		{"httpd -k start", "httpd -k start -D FOREGROUND"},
		{"/usr/sbin/apachectl start", "sh -c|. /etc/apache2/envvars; mkdir -p \"$APACHE_RUN_DIR\" \"$APACHE_LOCK_DIR\"; exec /usr/sbin/apache2 -D FOREGROUND"},
		{"my-server -d", "my-server -d"},
		{"/usr/lib/postgresql/15/bin/pg_ctl start -D /x -w", "/usr/lib/postgresql/15/bin/postgres -D /x"},
		{"pg_ctl start -D /x -o -p1", "pg_ctl start -D /x -o -p1"},
		{"pg_ctl status -D /x", "pg_ctl status -D /x"},
		{"/usr/bin/mysqld_safe --user=mysql", "/usr/bin/mysqld --user=mysql"},
		{"mariadbd-safe", "mariadbd"},
	} {
		split := func(line string) []string {
			words := strings.Fields(line)
			if i := slices.IndexFunc(words, func(w string) bool { return strings.Contains(w, "|") }); i >= 0 { // a word with a space
				flag, rest, _ := strings.Cut(strings.Join(words[i:], " "), "|")
				words = append(words[:i], flag, rest)
			}
			return words
		}
		if diff := cmp.Diff(split(c.want), unitfile.Foreground(split(c.given))); diff != "" {
			t.Errorf("%s: %s", c.given, diff)
		}
	}
}

func TestEnabledUnitsAreRivals(t *testing.T) {
	dir := t.TempDir()
	units := filepath.Join(dir, "etc/systemd/system")
	if err := os.MkdirAll(filepath.Join(units, "multi-user.target.wants"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, command := range map[string]string{"enabled": "/usr/bin/tail -f x", "disabled": "/usr/bin/head x", "script": "/bin/sh x"} {
		if err := os.WriteFile(filepath.Join(units, name+".service"), []byte("[Service]\nExecStart="+command+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		if name == "disabled" {
			continue
		}
		if err := os.Symlink("../"+name+".service", filepath.Join(units, "multi-user.target.wants", name+".service")); err != nil {
			t.Fatal(err)
		}
	}
	tail, err := filepath.EvalSymlinks("/usr/bin/tail")
	if err != nil {
		t.Fatal(err)
	}
	var mine []string
	for file, unit := range unitfile.Rivals(dir) { // it has what runs on this machine as well
		if slices.Contains([]string{"enabled.service", "disabled.service", "script.service"}, unit) {
			mine = append(mine, file+" "+unit)
		}
	}
	if diff := cmp.Diff([]string{tail + " enabled.service"}, mine); diff != "" {
		t.Error(diff)
	}
}
