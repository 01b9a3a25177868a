package programs

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"understudy/packaging/need"
	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/must"
)

// drbd is a folder of scripts that stand for DRBD, a server and a power switch. As the real ones do they refuse a second Primary, and to make
// a host Secondary that has the device mounted. All write what they did to a log.
func drbd(t *testing.T, d *disk) (dir string) {
	t.Helper()
	dir = kit.Open(t, t.TempDir())
	for name, text := range map[string]string{
		"drbdadm": `case "$1" in
primary) mkdir "$here/primary" 2>/dev/null || [ "$(cat "$here/primary/node")" = "$node" ] || { note REFUSED; exit 17; }
	echo "$node" >"$here/primary/node" ;;
secondary) [ ! -e "$mounted" ] || exit 11
	[ "$(cat "$here/primary/node" 2>/dev/null)" != "$node" ] || rm -r "$here/primary" ;;
esac
note "$1"`,
		"server": `[ -e "$mounted" ] || note UNMOUNTED; note server; exec python3 -m http.server --bind "$1" 80`,
		"power-off": `rm -rf "$here/primary"
node=$UNDERSTUDY_TARGET_NODE; note off`,
	} {
		head := "#!/bin/sh\nhere=" + dir + "\nnode=$UNDERSTUDY_NODE\nread -r mounted <\"$here/mounted.$node\"\nnote() { echo \"$node $1\" >>\"$here/log\"; }\n"
		must.OK(t, os.WriteFile(filepath.Join(dir, name), []byte(head+text+"\n"), 0o755))
	}
	for node, file := range d.mounted {
		must.OK(t, os.WriteFile(filepath.Join(dir, "mounted."+node), []byte(file+"\n"), 0o644))
	}
	return dir
}

// Each host does and undoes the steps in their order, and a host that is lost is switched off before another one becomes Primary.
func TestAFileSystemOnDRBDIsPrimaryOnOneHost(t *testing.T) {
	need.These(t, "cgroup", "loop")
	s, vip := recipe(t, "files", "ip", "python3")
	d := newDisk(t, "ext4", s.a, s.b)
	tools := drbd(t, d)
	for _, h := range s.hosts() {
		h.PowerOn(t)
		s.example(t, h, "drbd.yaml", "192.0.2.10", vip, "  files:", "  "+s.service+":", "/usr/sbin/drbdadm", filepath.Join(tools, "drbdadm"),
			"/dev/drbd0", d.devices[h.Name], "/srv/files", d.dir,
			`[/usr/sbin/nginx, -g, "daemon off;"]`, fmt.Sprintf("[%s, %s]", filepath.Join(tools, "server"), vip),
			"/usr/local/sbin/power-off-host", filepath.Join(tools, "power-off"), "{db-1: db-1, db-2: db-2}", "{a: a, b: b}")
	}
	log := filepath.Join(tools, "log")
	follows := func(lines ...string) {
		t.Helper()
		text, err := os.ReadFile(log)
		must.OK(t, err)
		if got := strings.Split(strings.TrimSpace(string(text)), "\n"); !slices.Equal(got, lines) {
			t.Fatalf("what was done: %q, not %q", got, lines)
		}
		must.OK(t, os.Truncate(log, 0))
	}
	watchBearers(t, vip, s.a, s.b)
	s.start(t, s.a)
	s.role(t, s.a, "active")
	follows("a primary", "a server")
	s.start(t, s.b)
	s.role(t, s.b, "standby")
	s.order(t, "switchover", s.service, "--to", "b")
	s.role(t, s.b, "active")
	follows("a secondary", "b primary", "b server")
	s.role(t, s.a, "standby")
	s.b.PowerOff(t)
	s.role(t, s.a, "active")
	follows("b off", "a primary", "a server")
}

// cronLine is the command of the recipe's crontab.
func cronLine(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("../../../docs/recipes.md")
	must.OK(t, err)
	line := regexp.MustCompile("<!-- typed: cron -->\n```\n(?:\\S+ ){6}(.*)\n```\n").FindSubmatch(page)
	if line == nil {
		t.Fatal("docs/recipes.md has no crontab")
	}
	return string(line[1])
}

// cron runs the recipe's line on a host, as cron does at the same minute on each. What goes to syslog is returned with the exit code.
func (s *set) cron(t *testing.T, h *kit.Host, job string) (line *os.Process, ends func() (out string, code int)) {
	t.Helper()
	text := cronLine(t)
	for _, swap := range [][2]string{
		{"understudy run", kit.UnderstudyBinary(t) + " run --node " + h.Name}, {"zk1:2181,zk2:2181,zk3:2181", strings.Join(s.Servers, ",")},
		{"--root /cron", "--root " + s.root}, {"/usr/local/bin/nightly", job}, {"--hold 1m", "--hold 1h"}, {" | logger -t nightly", ""},
	} {
		if strings.Count(text, swap[0]) != 1 {
			t.Fatalf("the line does not hold %q once: %s", swap[0], text)
		}
		text = strings.Replace(text, swap[0], swap[1], 1)
	}
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	must.OK(t, err)
	defer log.Close()
	cmd := h.Command("sh", "-c", "exec "+text)
	cmd.Stdout, cmd.Stderr = log, log
	must.OK(t, cmd.Start())
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // the exit code is read from ProcessState
		close(ended)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		<-ended
	})
	return cmd.Process, func() (string, int) {
		t.Helper()
		kit.Until(t, soon, "the line of "+h.Name+" ends", func() bool {
			select {
			case <-ended:
				return true
			default:
				return false
			}
		})
		out, err := os.ReadFile(log.Name())
		must.OK(t, err)
		return string(out), cmd.ProcessState.ExitCode()
	}
}

// A job that cron starts on two hosts runs on one of them; its exit code is that of the job there, and 75 elsewhere.
func TestACronJobRunsOnOneHost(t *testing.T) {
	s, _ := recipe(t, "nightly")
	dir := kit.Open(t, t.TempDir())
	job := filepath.Join(dir, "job")
	must.OK(t, os.WriteFile(job, []byte("#!/bin/sh\necho ran >>"+dir+"/ran\nexit 7\n"), 0o755))
	line, first := s.cron(t, s.a, job)
	kit.Until(t, soon, "the job has run", func() bool { _, err := os.Stat(dir + "/ran"); return err == nil })
	_, second := s.cron(t, s.b, job)
	if out, code := second(); code != 75 || !strings.Contains(out, "it is active on a") {
		t.Errorf("on b: exit code %d: %s", code, out)
	}
	must.OK(t, line.Signal(syscall.SIGTERM)) // in place of waiting for the end of --hold
	if out, code := first(); code != 7 {
		t.Errorf("on a: exit code %d: %s", code, out)
	}
	if text, _ := os.ReadFile(dir + "/ran"); string(text) != "ran\n" {
		t.Errorf("the job wrote %q", text)
	}
}
