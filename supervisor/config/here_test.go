package config

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// us is who runs the test.
var us = regexp.MustCompile(`(root|user \d+) and group \d+`)

func TestWhatThisMachineLacksIsNoFault(t *testing.T) {
	dir := tree(t, map[string]string{"secret": "me:pass", "env": "A=b\nnonsense\n", "good.env": "A=b\n", "file": "", "cr": "#!/bin/sh\r\n", "bare": "#!/no/shell -e\n", "good": "#! /bin/sh\n", "empty": "", "text": "exec sleep 1\n", "elf": "\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\x15\x00", "part.yaml": "services:\n  z: {command: /nowhere/z}\n"})
	if err := os.Chmod(filepath.Join(dir, "secret"), 0o644); err != nil {
		t.Fatal(err)
	}
	src := strings.ReplaceAll(`node: n
zookeeper: {servers: [a], auth: {scheme: digest, file: DIR/secret}}
include: [part.yaml]
defaults: {user: nobody-of-that-name}
services:
  a:
    command: [no-such-program, x]
    group: none-of-that-name
    working_dir: DIR/none
    env_file: DIR/env
    log: {file: DIR/logs/a.log}
    health: {exec: /nowhere/check}
    precheck: {exec: [no-such-check]}
    ready: {exec: [no-such-probe]}
    hooks: {on_active: no-such-hook, on_fence: {command: DIR/file}}
    fencing: {methods: [exec: {command: no-such-fence}]}
  b: {command: ./file, working_dir: DIR/file, user: ME}
  c: {command: sh, user: 12345, group: 54321, working_dir: DIR, env_file: DIR/good.env, log: {file: DIR/c.log}}
  d: {processes: [{name: p, command: sh, oneshot: true, undo: no-such-undo}], user: ME}
  e: {command: sh, env: {PATH: DIR}, user: ME}
  f: {command: DIR/cr, user: ME}
  g: {command: DIR/bare, user: ME}
  h:
    command: DIR/good
    user: ME
    log: {file: DIR}
  i: {command: DIR/empty, user: ME}
  j: {command: /tmp, user: ME}
  k: {command: DIR/text, user: ME}
  l: {command: [sh, -c, "sleep 1 & "], user: ME}
  n: {command: DIR/elf, user: ME}
  m: {command: [DIR/empty/understudy, run, x], user: ME}
`, "DIR", dir)
	for _, script := range []string{"cr", "bare", "good", "empty", "text", "elf"} {
		if err := os.Chmod(filepath.Join(dir, script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	src = strings.ReplaceAll(src, "ME", strconv.Itoa(os.Geteuid())) // who is not root runs nobody else's
	name := filepath.Join(dir, "u.yaml")
	if err := os.WriteFile(name, []byte(src), 0o600); err != nil {
		t.Fatal(err)
	}
	r := Read(name, "")
	if r.Err() != nil {
		t.Fatal(r.Err())
	}
	var got []string
	for _, w := range r.Here() {
		text := strings.ReplaceAll(strings.TrimSuffix(w.String(), " (on this machine)"), dir+"/", "")
		got = append(got, us.ReplaceAllString(text, "US"))
	}
	want := []string{
		`u.yaml:2:56: zookeeper.auth.file: secret belongs to US, and its mode 0644 lets others read it: chmod 600 secret`,
		`u.yaml:4:18: defaults.user: there is no "nobody-of-that-name"`,
		`u.yaml:7:14: services.a.command: "no-such-program" is not in PATH`,
		`u.yaml:8:12: services.a.group: there is no "none-of-that-name"`,
		`u.yaml:9:18: services.a.working_dir: "none": no such file or directory`,
		`u.yaml:10:15: services.a.env_file: env:2:1: not a line of KEY=VALUE`,
		`u.yaml:11:17: services.a.log.file: "logs": no such file or directory`,
		`u.yaml:12:20: services.a.health.exec: "/nowhere/check": no such file or directory`,
		`u.yaml:13:22: services.a.precheck.exec: "no-such-check" is not in PATH`,
		`u.yaml:14:19: services.a.ready.exec: "no-such-probe" is not in PATH`,
		`u.yaml:15:24: services.a.hooks.on_active.command: "no-such-hook" is not in PATH`,
		`u.yaml:15:58: services.a.hooks.on_fence.command: "file": permission denied: it is not executable (chmod +x makes it so)`,
		`u.yaml:16:41: services.a.fencing.methods[0].exec.command: "no-such-fence" is not in PATH`,
		`u.yaml:17:16: services.b.command: "./file": not a directory`,
		`u.yaml:17:37: services.b.working_dir: "file" is not a directory`,
		`u.yaml:18:26: services.c.user: no user has the number 12345, so HOME is /`,
		`u.yaml:19:63: services.d.processes[0].undo: "no-such-undo" is not in PATH`,
		`u.yaml:20:16: services.e.command: "sh" is not found in the PATH of env`,
		`u.yaml:21:16: services.f.command: "cr": its lines end as on Windows, so the kernel looks for "/bin/sh\r": sed -i 's/\r$//' cr`,
		`u.yaml:22:16: services.g.command: "bare": its interpreter /no/shell: no such file or directory`,
		`u.yaml:26:17: services.h.log.file: ` + strconv.Quote(dir) + ` is a directory: name a file in it`,
		`u.yaml:27:16: services.i.command: "empty": is empty`,
		`u.yaml:28:16: services.j.command: "/tmp": is a directory`,
		`u.yaml:29:16: services.k.command: "text": is a text that names no interpreter: let its first line be #!/bin/sh, or another one`,
		`u.yaml:30:16: services.l.command: its shell ends while what & starts runs on, and counts as ended: leave the & out`,
		`u.yaml:31:16: services.n.command: "elf": is a program for another processor (EM_PPC64)`,
		`u.yaml:32:16: services.m.command: "empty/understudy": not a directory`,
		`u.yaml:32:16: services.m.command: is a supervisor in a supervisor: write the command of its program`,
		`part.yaml:2:16: services.z.command: "/nowhere/z": no such file or directory`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestKeysOfTheAgentAreLookedAt(t *testing.T) {
	dir := tree(t, map[string]string{"two": "the first secret\nthe second secret\n"})
	if err := os.Chmod(filepath.Join(dir, "two"), 0o604); err != nil {
		t.Fatal(err)
	}
	src := strings.ReplaceAll(`node: n
zookeeper: {servers: [a]}
fencing: {agent: {listen: ":1", secret_file: DIR/two}}
services: {}
`, "DIR", dir)
	r := newLoader("u.yaml", disk{}).load([]byte(src))
	if r.Err() != nil {
		t.Fatal(r.Err())
	}
	got := us.ReplaceAllString(strings.ReplaceAll(r.Here().Error(), dir+"/", ""), "US")
	want := "u.yaml:3:46: fencing.agent.secret_file: two belongs to US, and its mode 0604 lets others read it: chmod 600 two"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// Who is not root can forbid new privileges, and neither bound nor give what is root's.
func TestWhatTakesRootIsWarnedAbout(t *testing.T) {
	const src = head + "services:\n  s:\n    command: sh\n    user: root\n    no_new_privileges: true\n    capabilities: {bounding: [CAP_CHOWN], ambient: [CAP_CHOWN]}\n"
	if os.Geteuid() == 0 && os.Getenv("AS_NOBODY") == "" {
		if r := newLoader("u.yaml", disk{}).load([]byte(src)); r.Err() != nil || len(r.Here()) > 0 {
			t.Errorf("root: %v %v", r.Err(), r.Here())
		}
		cmd := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v")
		cmd.Env, cmd.Dir = append(os.Environ(), "AS_NOBODY=1"), "/"
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS") {
			t.Errorf("nobody: %v\n%s", err, out)
		}
		return
	}
	want := `u.yaml:6:11: services.s.user: only a supervisor that runs as root can run a program as "root" (on this machine)
u.yaml:8:30: services.s.capabilities.bounding: only a supervisor that runs as root can lower it: run it as root, or leave the key out (on this machine)
u.yaml:8:52: services.s.capabilities.ambient: only a supervisor that runs as root can give them to another user: run it as root, or leave the key out (on this machine)`
	r := newLoader("u.yaml", disk{}).load([]byte(src))
	if diff := cmp.Diff(want, r.Here().Error()); diff != "" {
		t.Error(diff)
	}
}

// A path is no bare name.
func TestAProgramInThisDirectoryIsFound(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("own", []byte("#!/bin/sh\n"), 0o700); err != nil { //nolint:gosec // it is run
		t.Fatal(err)
	}
	for command, want := range map[string]string{"./own": "<nil>", "./none": "./none: no such file or directory", "own": "own is not in PATH"} {
		s := Service{Processes: []Process{{Program: Program{Command: Command{command}}}}}
		if got := fmt.Sprint(s.Lacks()); got != want {
			t.Errorf("%s: %q", command, got)
		}
	}
}

// A oneshot has to end, as a test of a config that runs the daemon's own binary does: only what should keep running is told to stay in front.
func TestWhatOnlyAsksAnotherProgramIsWarnedAbout(t *testing.T) {
	const src = head + "services:\n  a: {command: systemctl start nginx}\n  b: {command: /usr/bin/docker run -d x}\n  c: {command: screen}\n" +
		"  script: {command: /etc/init.d/nginx start}\n" +
		"  d:\n    processes:\n      - {name: before, command: systemctl start x, oneshot: true}\n      - {name: main, command: sleep 1}\n"
	r := newLoader("u.yaml", disk{}).load([]byte(src))
	if r.Err() != nil {
		t.Fatal(r.Err())
	}
	var got []string
	for _, f := range r.Here() {
		if strings.Contains(f.Message, "has another program run what it names") || strings.Contains(f.Message, "to the background") {
			got = append(got, f.Key)
		}
	}
	if diff := cmp.Diff([]string{"services.a.command", "services.b.command", "services.script.command"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestOnlyWhatKeepsRunningIsToStayInTheForeground(t *testing.T) {
	const src = head + "services:\n  s:\n    processes:\n      - {name: before, command: nginx -t -q, oneshot: true}\n      - {name: main, command: nginx -q}\n  one: {command: nginx}\n"
	r := newLoader("u.yaml", disk{}).load([]byte(src))
	if r.Err() != nil {
		t.Fatal(r.Err())
	}
	dangers, _, _ := r.Dangers(time.Minute) // what status has
	for what, list := range map[string]Faults{"check": r.Here(), "status": dangers} {
		var got []string
		for _, f := range list {
			if strings.Contains(f.Message, "background") {
				got = append(got, f.Key)
			}
		}
		if diff := cmp.Diff([]string{"services.s.processes[1].command", "services.one.command"}, got); diff != "" {
			t.Errorf("%s: %s", what, diff)
		}
	}
}
